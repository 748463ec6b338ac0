"""What a batch of reports becomes: rounds, checkpoints, events, and nothing twice."""

from __future__ import annotations

import hashlib
import time

import pytest

from tests.factories import make_collaboration, make_device, make_session
from tests.live.agents import receipt, verdict
from trainer.recipe import Finish
from trainer.wire import (
    CheckpointWritten,
    HeldOut,
    Report,
    Role,
    RoundSeen,
    SwarmOpened,
)
from webapp.artifacts.storage import checkpoint_folder
from webapp.collaborations import finish_rules
from webapp.collaborations.services import coordinator_device
from webapp.credit.models import Receipt
from webapp.live.models import Event, RoundRecord
from webapp.live.store import store


@pytest.fixture
def member(device, collaboration):
    return make_session(device, collaboration)


@pytest.fixture
def coordinator(collaboration):
    device, _ = coordinator_device(collaboration)
    return make_session(device, collaboration, role=Role.COORDINATOR)


def numbered(session, *bodies, first=1, at=None):
    at = time.time() if at is None else at
    return [
        (session.pk, Report(seq=seq, at=at, body=body)) for seq, body in enumerate(bodies, first)
    ]


def test_the_same_batch_twice_is_stored_once(member):
    batch = numbered(member, receipt(0), receipt(1))
    assert store(batch).seqs == {member.pk: 2}
    assert store(batch).seqs == {member.pk: 2}
    assert (Receipt.objects.count(), RoundRecord.objects.count()) == (2, 2)
    assert Event.objects.filter(what="round").count() == 2


def test_reports_behind_a_gap_wait(member):
    batch = numbered(member, receipt(0), receipt(1), receipt(2))
    assert store([batch[0], batch[2]]).seqs == {member.pk: 1}
    assert store(batch[1:]).seqs == {member.pk: 3}


def test_the_coordinator_overrides_what_members_said_of_a_round(member, coordinator):
    store(numbered(member, receipt(0, members=2, loss=4.0)))
    store(numbered(coordinator, RoundSeen(verdict=verdict(0, members=3, loss=3.5))))
    store(numbered(member, receipt(0, members=9, samples=10**6), first=2))
    record = RoundRecord.objects.get()
    assert (record.members, record.loss, record.from_coordinator) == (3, 3.5, True)


def test_rounds_after_an_older_checkpoint_are_done_anew_and_the_page_says_so(coordinator):
    seen = [RoundSeen(verdict=verdict(number, loss=5.0)) for number in range(4)]
    began = coordinator.started_at.timestamp()
    store(numbered(coordinator, *seen, at=began + 0.01))
    store(numbered(coordinator, RoundSeen(verdict=verdict(2, loss=4.5)), first=5, at=began + 0.02))
    records = list(RoundRecord.objects.order_by("round"))
    assert [(one.round, one.loss) for one in records] == [(0, 5.0), (1, 5.0), (2, 4.5)]
    assert records[2].at > records[1].at
    assert "rounds 2 to 3 are done anew" in Event.objects.get(what="warning").text


def test_a_round_that_failed_first_and_was_repeated_counts_as_clean(member, collaboration):
    store(numbered(member, receipt(0, outcome="partial", samples=500)))
    collaboration.refresh_from_db()
    assert collaboration.state == "open"
    store(numbered(member, receipt(0, outcome="clean", samples=64), first=2))
    assert RoundRecord.objects.get().outcome == "clean"
    texts = [event.text for event in Event.objects.filter(what="round").order_by("pk")]
    assert "was not applied" in texts[0]
    assert "is done" in texts[1]


def test_members_cannot_speak_as_the_coordinator(member):
    store(
        numbered(
            member,
            RoundSeen(verdict=verdict(10**6)),
            HeldOut(round=0, loss=0.1, tokens=10),
            SwarmOpened(peer_id="p", addresses=("/ip4/6.6.6.6/tcp/1",)),
        )
    )
    member.collaboration.refresh_from_db()
    assert (member.collaboration.bootstrap, RoundRecord.objects.count()) == ([], 0)


def test_the_coordinators_held_out_loss_and_address_are_kept(coordinator, collaboration):
    store(
        numbered(
            coordinator,
            SwarmOpened(peer_id="p", addresses=("/ip4/127.0.0.1/tcp/1",)),
            RoundSeen(verdict=verdict(0)),
            HeldOut(round=0, loss=3.25, tokens=10),
        )
    )
    collaboration.refresh_from_db()
    assert collaboration.bootstrap == ["/ip4/127.0.0.1/tcp/1"]
    assert RoundRecord.objects.get().held_out_loss == 3.25


def test_a_checkpoint_is_taken_over_and_a_false_one_becomes_a_warning(coordinator, collaboration):
    folder = checkpoint_folder(collaboration.slug)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "round-5.safetensors").write_bytes(b"weights")
    good = CheckpointWritten(
        round=5,
        filename="round-5.safetensors",
        sha256=hashlib.sha256(b"weights").hexdigest(),
        size_bytes=7,
    )
    false = good.model_copy(update={"round": 6, "sha256": "0" * 64})
    assert store(numbered(coordinator, good, false)).seqs == {coordinator.pk: 2}
    assert collaboration.checkpoints.get().round == 5
    whats = [event.what for event in Event.objects.order_by("pk")]
    assert whats == ["checkpoint", "warning"]


def test_a_rule_that_holds_finishes_the_collaboration(alice):
    collaboration = make_collaboration("short", finish=Finish(rounds=2))
    session = make_session(make_device(alice)[0], collaboration)
    for seq, number in enumerate((0, 1), start=1):  # the first round has the number 0
        assert collaboration.state != "finished"
        for moved in store(numbered(session, receipt(number), first=seq)).moved:
            finish_rules.check(moved)
        collaboration.refresh_from_db()
    assert (collaboration.state, "2 rounds" in collaboration.state_reason) == ("finished", True)
    assert "finished" in Event.objects.filter(what="state").latest("pk").text


def test_a16_no_round_lies_in_the_future_or_before_an_earlier_one(member):
    now = time.time()
    for seq, offset_s in enumerate((0, 600, -8 * 3600, 3600, -1), start=1):
        store(numbered(member, receipt(seq), first=seq, at=now + offset_s))
    times = list(RoundRecord.objects.order_by("round").values_list("at", flat=True))
    assert times == sorted(times)
    assert all(abs(at.timestamp() - now) < 60 for at in times)


def test_rounds_kept_on_a_device_while_the_site_was_down_keep_their_times(member):
    member.started_at = member.started_at.replace(year=2020)
    member.save()
    ago = time.time() - 600
    store(numbered(member, receipt(1), at=ago))
    assert RoundRecord.objects.get().at.timestamp() == pytest.approx(ago, abs=0.001)
