"""Whose data a model is made of, as the organiser sees it."""

from __future__ import annotations

import pytest

from tests.factories import make_collaboration, make_device, make_session, make_user
from tests.web.test_credit import report
from trainer.recipe import Participation
from webapp.accounts.services import delete_account
from webapp.credit.data_shares import MOST_ROWS, data_shares
from webapp.credit.models import HourlyCredit
from webapp.credit.services import book_receipt

pytestmark = pytest.mark.django_db
PAGE = "/console/c/choir/"


@pytest.fixture
def choir():
    return make_collaboration("choir", participation=Participation(most_share=0.5))


def give(user, collaboration, seq, samples, weight, accepted=True):
    session = make_session(make_device(user, f"of {seq}")[0], collaboration)
    told = report(1, samples=samples, accepted=accepted)
    body = told.body.model_copy(update={"weight": weight})
    assert book_receipt(session, told.model_copy(update={"body": body}))


def test_shares_are_of_the_tokens_and_of_the_weight_of_all_accepted_receipts(choir):
    ada, ben = make_user("ada"), make_user("ben")
    give(ada, choir, 1, samples=90, weight=0.5)
    give(ben, choir, 2, samples=5, weight=0.3)
    give(ben, choir, 3, samples=5, weight=0.2)
    give(ben, choir, 4, samples=900, weight=0.9, accepted=False)
    first, second = data_shares(choir)
    assert (first.user, first.tokens, first.weight, first.rounds) == (ada, 0.9, 0.5, 1)
    assert (second.user, second.tokens, second.rounds) == (ben, 0.1, 2)
    assert second.weight == pytest.approx(0.5)


def test_of_agents_that_do_not_tell_their_weight_only_the_tokens_are_known(choir):
    give(make_user("ada"), choir, 1, samples=8, weight=None)
    (only,) = data_shares(choir)
    assert (only.tokens, only.weight) == (1.0, None)
    assert data_shares(make_collaboration("other")) == []


def test_the_console_shows_them_with_the_cap_and_nobody_else_sees_them(client, olga, choir):
    ada = make_user("ada")
    give(ada, choir, 1, samples=90, weight=0.5)
    give(make_user("ben"), choir, 2, samples=10, weight=0.5)
    client.force_login(olga)
    page = client.get(PAGE).text
    assert "Whose data it learns from" in page
    assert "90 %" in page and page.count("50 %") >= 3
    assert "No device weighs more than 50 % of a round." in page
    delete_account(ada)
    gone = client.get(PAGE).text
    assert "deleted accounts" in gone and "90 %" in gone
    client.force_login(make_user("eve"))
    assert client.get(PAGE).status_code == 403
    assert "Whose data" not in client.get("/c/choir/").text


def test_a_long_list_is_cut_and_its_shares_are_still_of_all(choir):
    for number in range(MOST_ROWS + 5):
        give(make_user(f"user-{number}"), choir, number, samples=4, weight=0.04)
    found = data_shares(choir)
    assert len(found) == MOST_ROWS
    assert found[0].tokens == pytest.approx(1 / (MOST_ROWS + 5))
    assert HourlyCredit.objects.count() == MOST_ROWS + 5
