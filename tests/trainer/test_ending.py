"""How a round ends once there is a verdict: the step, or the way back, read from the notes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from tests.trainer.models import make_batch, make_recipe
from trainer.engine.ending import Ending
from trainer.engine.learner import Learner
from trainer.engine.tally import Tally
from trainer.swarm.deadline import Deadline
from trainer.swarm.verdict import Note, Verdict
from trainer.wire import Outcome, Role, VerdictSummary


class Member:
    """One peer's learner and endings, without a network: `told` is what it reports of rounds."""

    def __init__(self, name: str) -> None:
        self.learner = Learner(make_recipe(), pad_id=0)
        self.peer = SimpleNamespace(
            peer_id=name, coordinators=frozenset("M"), share_state=lambda number: None
        )
        self.tracker = SimpleNamespace(publish=lambda: None)
        self.told: list[VerdictSummary] = []
        self.released: list[str] = []
        self.wanted: list[int] = []
        self.catch_up = SimpleNamespace(run=self.wanted.append)
        self.stage: Any = None
        self.own_check = None
        self.turn = SimpleNamespace(decide=lambda verdict: None)
        self.timing = SimpleNamespace(deadline=Deadline(60))
        self.ending = Ending(self)  # type: ignore[arg-type]

    def start_round(self) -> Tally:
        return Tally()

    def ended(self, summary: VerdictSummary, done: Tally) -> None:
        self.told.append(summary)

    def release(self, reason: str) -> None:
        self.released.append(reason)

    def note(self, loss: float) -> Note:
        history = self.ending._history
        return Note(
            round=self.learner.round,
            role=Role.PEER,
            samples=8,
            tokens=100,
            loss_sum=100 * loss,
            weight=100.0,
            norm=1.0,
            fingerprint=self.learner.fingerprint(),
            usual_loss=history.usual_loss(),
            usual_norm=history.usual_norm(),
            good_round=history.good_round,
        )


def play(members: dict[str, Member], loss: float, scale: float = 1.0) -> None:
    """One round in which all have the same gradient, and the loss they began with is `loss`."""
    first = next(iter(members.values()))
    first.learner.learn(make_batch(first.learner.round))
    offer = first.learner.offer()
    assert offer is not None
    mean = [tensor * scale for tensor in offer.tensors]
    notes = {name: member.note(loss) for name, member in members.items()}
    verdict = Verdict(first.learner.round, Outcome.CLEAN, notes)
    for member in members.values():
        member.ending._apply(verdict, mean)


def same(one: Member, other: Member) -> bool:
    pairs = zip(one.learner.state()[1], other.learner.state()[1], strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_all_members_go_back_to_the_newest_good_round_when_the_loss_explodes():
    members = {name: Member(name) for name in "MAB"}
    for _ in range(6):
        play(members, 2.0)
    good = [tensor.clone() for tensor in members["M"].learner.state()[1]]
    play(members, 2.0)  # the step of round 6 is bad, as the loss of round 7 shows
    play(members, 9.0)
    for member in members.values():
        assert member.learner.round == 8
        assert all(torch.equal(a, b) for a, b in zip(member.learner.state()[1], good, strict=True))
        assert member.told[-1].outcome is Outcome.UNDONE
        assert member.told[-1].reason == (
            "the loss rose to 9, where 2 is usual; back to the parameters of round 6"
        )
    play(members, 2.1)
    assert {member.told[-1].outcome for member in members.values()} == {Outcome.CLEAN}
    assert same(members["M"], members["A"]) and same(members["M"], members["B"])


def test_a_member_that_joined_since_the_good_round_takes_the_state_from_the_others():
    members = {name: Member(name) for name in "MA"}
    for _ in range(7):
        play(members, 2.0)
    newcomer = members["N"] = Member("N")
    newcomer.learner.load_state(7, members["M"].learner.state()[1])
    play(members, 9.0)
    assert newcomer.wanted == [8] and newcomer.told == []
    assert "back to the parameters of round 6" in newcomer.released[0]


def test_a_step_to_parameters_that_are_not_finite_is_undone_at_once():
    members = {name: Member(name) for name in "MA"}
    play(members, 2.0)
    good = [tensor.clone() for tensor in members["A"].learner.state()[1]]
    play(members, 2.0, scale=float("nan"))
    for member in members.values():
        assert member.learner.round == 2
        assert all(torch.equal(a, b) for a, b in zip(member.learner.state()[1], good, strict=True))
        assert "not finite" in member.told[-1].reason


def test_nothing_is_undone_before_it_is_known_what_is_usual():
    members = {name: Member(name) for name in "MA"}
    for loss in (2.0, 9.0, 2.0, 9.0):
        play(members, loss)
    assert {summary.outcome for summary in members["A"].told} == {Outcome.CLEAN}
