"""Receipts are booked once, and people see what they may."""

from __future__ import annotations

import random
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from tests.at_once import at_once
from tests.factories import make_collaboration, make_device, make_session, make_user
from trainer.recipe import Text
from trainer.wire import Outcome, Receipt, Report, RoundSeen, VerdictSummary
from webapp.accounts.services import delete_account, set_listed
from webapp.collaborations.services import coordinator_device
from webapp.credit import selectors
from webapp.credit.models import HourlyCredit
from webapp.credit.models import Receipt as BookedReceipt
from webapp.credit.own_losses import spread_of
from webapp.credit.services import book_receipt, book_receipts
from webapp.devices.selectors import my_sessions


def verdict(number=1):
    return VerdictSummary(round=number, outcome=Outcome.CLEAN, members=1, samples=8, tokens=80)


def report(seq, *, samples=8, accepted=True, at=0.0):
    body = Receipt(
        round=seq,
        samples=samples,
        tokens=samples * 10,
        accepted=accepted,
        compute_s=0.5,
        verdict=verdict(seq),
    )
    return Report(seq=seq, at=at, body=body)


@pytest.fixture
def session(device, collaboration):
    return make_session(device, collaboration)


def test_the_console_tells_the_newest_losses_of_those_who_agreed(client, olga):
    notes = make_collaboration("notes", texts=(Text(kind="private"),))
    client.force_login(olga)
    assert "On volunteers" not in client.get("/console/c/notes/").text
    for name, losses in (("a", (9.0, 2.0)), ("b", (4.0,)), ("c", (4.0,)), ("d", (None,))):
        own = make_session(make_device(make_user(name))[0], notes)
        for seq, loss in enumerate(losses, 1):
            body = report(seq).body.model_copy(update={"own_loss": loss})
            assert book_receipt(own, report(seq).model_copy(update={"body": body}))
    spread = spread_of(notes)
    assert (spread.num_devices, spread.best, spread.worst) == (3, 2.0, 4.0)
    page = client.get("/console/c/notes/").text
    assert "2.000 to 4.000, on average 3.333" in page and "3 devices tell their loss" in page


def test_a_report_sent_again_is_booked_once(alice, session):
    assert book_receipt(session, report(1))
    assert not book_receipt(session, report(1))
    assert book_receipts([(session.pk, report(1)), (session.pk, report(2))] * 3) == 1
    totals = selectors.my_totals(alice)
    assert (totals.samples, totals.tokens, totals.rounds) == (16, 160, 2)
    session.refresh_from_db()
    assert session.compute_s == totals.compute_s == 1.0


def test_reports_in_any_order_cut_and_repeated_add_up_to_the_same(session, alice):
    shuffle = random.Random(7)
    reports = [(session.pk, report(seq)) for seq in range(1, 201)] * 3
    shuffle.shuffle(reports)
    while reports:
        cut = shuffle.randrange(1, 60)
        book_receipts(reports[:cut])
        reports = reports[cut:]
    assert selectors.my_totals(alice).samples == 200 * 8
    assert BookedReceipt.objects.count() == 200


def test_a_refused_offer_has_a_receipt_and_no_credit(session, alice):
    book_receipt(session, report(1, accepted=False))
    assert BookedReceipt.objects.get().accepted is False
    assert selectors.my_totals(alice).samples == 0


def test_a_coordinator_earns_nothing_and_other_reports_are_passed_over(session, collaboration):
    own, _ = coordinator_device(collaboration)
    coordinator = make_session(own, collaboration, role="coordinator")
    seen = Report(seq=1, at=0.0, body=RoundSeen(verdict=verdict()))
    assert book_receipts([(coordinator.pk, report(1)), (session.pk, seen)]) == 0
    assert not HourlyCredit.objects.exists()


def test_a16_receipts_carry_the_sites_time_whatever_the_devices_clock_says(session):
    before = timezone.now()
    book_receipt(session, report(1, at=before.timestamp() + 8 * 3600))
    assert before <= BookedReceipt.objects.get().at <= timezone.now()


@pytest.mark.django_db(transaction=True)
def test_two_writers_with_the_same_reports_book_each_once(alice, collaboration):
    sessions = [make_session(make_device(alice, f"pc-{i}")[0], collaboration) for i in range(4)]
    reports = [(s.pk, report(seq)) for s in sessions for seq in range(1, 26)]

    def write(order):
        return sum(book_receipts(order[start : start + 10]) for start in range(0, len(order), 10))

    orders = [reports, reports[::-1], random.Random(1).sample(reports, len(reports))]
    assert sum(at_once(*(partial(write, order) for order in orders))) == 100
    assert selectors.my_totals(alice).samples == 800


def give(user, samples, collaboration, hours_ago=0, rounds=1):
    device = make_device(user)[0]
    HourlyCredit.objects.create(
        collaboration=collaboration,
        user=user,
        device=device,
        hour=timezone.now() - timedelta(hours=hours_ago),
        samples=samples,
        tokens=samples,
        rounds=rounds,
        compute_s=1.0,
    )


def test_a14_the_unlisted_have_no_row_but_for_themselves_and_organisers(alice, olga, collaboration):
    bob = make_user("bob")
    give(alice, 10, collaboration)
    give(bob, 5, collaboration)
    set_listed(alice, is_listed=False)

    def names(viewer):
        return [(row.name, row.is_me) for row in selectors.leaderboard(viewer=viewer).rows]

    assert names(None) == [("bob", False)]
    assert names(bob) == [("bob", True)]
    assert names(alice) == [("alice", True), ("bob", False)]
    assert names(olga) == [("alice", False), ("bob", False)]
    for viewer in (None, bob, alice, olga):
        board = selectors.leaderboard(viewer=viewer)
        assert (board.total.samples, board.unlisted.samples) == (15, 10)


def test_the_periods_of_the_leaderboard(alice, collaboration):
    give(alice, 1, collaboration)
    give(alice, 10, collaboration, hours_ago=30)
    give(alice, 100, collaboration, hours_ago=24 * 8)
    sums = [selectors.leaderboard(period).rows[0].samples for period in ("24h", "7d", "all")]
    assert sums == [1, 11, 111]
    with pytest.raises(ValueError, match="period"):
        selectors.leaderboard("year")


def test_the_leaderboard_has_pages_with_ranks_that_go_on(collaboration):
    for number in range(27):
        give(make_user(), 100 - number, collaboration)
    second = selectors.leaderboard("all", page=2)
    assert [row.rank for row in second.rows] == [26, 27]
    assert (second.page, second.num_pages, second.num_rows) == (2, 2, 27)


def test_by_rounds_a_weak_machine_is_seen_that_was_there_all_the_time(alice, collaboration):
    give(alice, 10, collaboration, rounds=50)
    give(make_user("bob"), 5000, collaboration, rounds=3)
    give(make_user("cyd"), 20, collaboration, rounds=50)

    def names(by):
        return [row.name for row in selectors.leaderboard(by=by).rows]

    assert names("samples") == ["bob", "cyd", "alice"]
    assert names("rounds") == ["cyd", "alice", "bob"]
    with pytest.raises(ValueError, match="by 'looks' is not one of samples, rounds"):
        selectors.leaderboard(by="looks")


def test_only_rounds_that_took_something_of_a_device_are_counted(session, alice):
    assert book_receipts([(session.pk, report(seq, accepted=seq != 2)) for seq in range(1, 5)]) == 4
    assert selectors.my_totals(alice).rounds == 3
    assert my_sessions(alice)[0].rounds == 3


def test_deleting_the_account_keeps_the_totals(alice, collaboration):
    give(alice, 10, collaboration, rounds=4)
    delete_account(alice)
    board = selectors.leaderboard("all", by="rounds")
    assert board.rows == []
    assert board.total.samples == board.unlisted.samples == 10
    assert board.total.rounds == board.unlisted.rounds == 4


def test_days_without_work_are_zero(alice, collaboration):
    give(alice, 7, collaboration, hours_ago=48)
    days = selectors.credit_per_day(alice, days=4)
    assert [day.samples for day in days] == [0, 7, 0, 0]
    assert days[-1].day == timezone.now().date()
