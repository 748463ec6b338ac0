"""What the event list says of rounds that were not simply complete."""

from __future__ import annotations

import time

import pytest

from tests.factories import make_session
from tests.live.agents import verdict
from trainer.wire import Outcome, Refusal, Report, Role, RoundSeen, VerdictSummary
from webapp.collaborations.services import coordinator_device
from webapp.live.models import Event, RoundRecord
from webapp.live.public import public_round
from webapp.live.store import store


@pytest.fixture
def coordinator(collaboration):
    device, _ = coordinator_device(collaboration)
    return make_session(device, collaboration, role=Role.COORDINATOR)


def tell(coordinator, seen: VerdictSummary) -> None:
    store([(coordinator.pk, Report(seq=1, at=time.time(), body=RoundSeen(verdict=seen)))])


def test_an_undone_round_is_a_warning_with_its_reason(coordinator):
    why = "the loss rose to 9.1, where 2.3 is usual; back to the parameters of round 7"
    seen = verdict(8, loss=9.1).model_copy(update={"outcome": Outcome.UNDONE, "reason": why})
    tell(coordinator, seen)
    event = Event.objects.get(what="warning")
    assert "Round 8 was undone" in event.text and "the loss rose to 9.1" in event.text.lower()
    assert RoundRecord.objects.get().outcome == "undone"


def test_an_offer_that_was_left_out_is_told_without_naming_its_maker(coordinator):
    left_out = (Refusal(peer="QmPeer", reason="claimed a weight of 1,000,000 for 10 tokens"),)
    seen = verdict(8).model_copy(update={"refused": left_out})
    tell(coordinator, seen)
    text = Event.objects.get(what="round").text
    assert "1 offer was left out: it claimed a weight of 1,000,000 for 10 tokens" in text
    assert "QmPeer" not in text + RoundRecord.objects.get().reason


def test_of_a_round_for_which_peers_were_chosen_it_is_told_how_many_delivered(coordinator):
    tell(coordinator, verdict(8).model_copy(update={"members": 3, "asked": 4}))
    record = RoundRecord.objects.get()
    assert "3 of 4 chosen peers" in Event.objects.get(what="round").text
    assert record.asked == 4 and public_round(record)["asked"] == 4


@pytest.mark.parametrize(("missed", "is_told"), [(0.1234, True), (0.0004, False), (None, False)])
def test_how_far_an_averaged_adapter_is_off_is_told_where_it_is(coordinator, missed, is_told):
    tell(coordinator, verdict(8).model_copy(update={"missed": missed}))
    text = Event.objects.get(what="round").text
    assert ("What was averaged is 12.3% of the round's change away" in text) is is_told
    assert bool(RoundRecord.objects.get().reason) is is_told
