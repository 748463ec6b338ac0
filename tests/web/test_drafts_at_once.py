"""Organisers who act on one draft at the same moment, by what each of them has looked at."""

from __future__ import annotations

from functools import partial

import pytest

from tests.at_once import at_once
from tests.factories import make_collaboration, make_recipe
from webapp.collaborations import drafts, services
from webapp.collaborations.models import Collaboration
from webapp.collaborations.selectors import version_of
from webapp.core.errors import UserError

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def draft(olga):
    return make_collaboration("night", state="draft")


@pytest.fixture
def change(draft, olga):
    """Of the seed, by who looked at the draft as it was made."""
    seen = version_of(draft)
    words = {"title": draft.title, "summary": "", "changed": ["Seed"]}

    def change(seed):
        recipe = make_recipe("night", seed=seed)
        drafts.change(draft, seen=seen, recipe=recipe, by=olga, **words)

    return change


def told(act) -> str:
    try:
        act()
    except UserError as error:
        return error.kind or "frozen"
    return "done"


def test_two_changes_at_the_same_moment_are_one_and_a_conflict(draft, change):
    acts = (partial(told, partial(change, seed)) for seed in (1, 2))
    assert sorted(at_once(*acts)) == ["conflict", "done"]
    assert draft.revisions.count() == 2


def test_opening_and_changing_at_the_same_moment_opens_nothing_that_was_not_looked_at(
    draft, change, olga
):
    opening = partial(services.open_, draft, by=olga, seen=version_of(draft))
    done = at_once(partial(told, opening), partial(told, partial(change, 3)))
    found = Collaboration.objects.get()
    after = (*done, found.state, found.recipe.seed)
    assert after in [("done", "frozen", "open", 0), ("conflict", "done", "draft", 3)]


def test_what_was_read_before_a_change_is_not_opened_after_it(draft, change, olga):
    """The change comes between the page's look at the draft and the lock."""
    seen = version_of(draft)
    change(3)
    with pytest.raises(UserError, match="changed after you looked") as refused:
        services.open_(draft, by=olga, seen=seen)
    assert refused.value.kind == "conflict"
    assert Collaboration.objects.get().state == "draft"
