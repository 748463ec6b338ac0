"""Rounds in which some of the devices train, with real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.swarm.swarm import Member, Swarm
from tests.waiting import wait_for
from trainer.recipe import Participation

pytestmark = pytest.mark.swarm
PATIENCE_S = 150.0
RESTS = "other devices were chosen for this round; this one takes the result"


def accepted(member: Member) -> list[int]:
    return [receipt["round"] for receipt in member.said("receipt") if receipt["accepted"]]


def test_two_of_three_train_in_each_round_and_still_do_without_the_coordinator(tmp_path: Path):
    swarm = Swarm(tmp_path, pause_s=0.05, target_samples=300)
    rules = Participation(chosen_by="lot", share=0.6)
    swarm.recipe = swarm.recipe.model_copy(update={"participation": rules})
    try:
        coordinator = swarm.open()
        peers = [swarm.add(name) for name in ("first", "second", "third")]

        def chosen() -> list[dict]:
            return [verdict for verdict in coordinator.rounds() if verdict["asked"] == 2]

        def had_both(peer: Member) -> bool:
            return bool(accepted(peer)) and RESTS in {
                one["reason"] for one in peer.said("progress")
            }

        wait_for(
            "rounds of two, and a turn and a rest of each",
            lambda: len(chosen()) >= 3 and all(map(had_both, peers)),
            PATIENCE_S,
        )
        assert {verdict["members"] for verdict in chosen()} == {2}
        last = coordinator.round
        coordinator.kill()
        wait_for("more rounds", lambda: min(peer.round for peer in peers) >= last + 4, PATIENCE_S)
        for peer in peers:
            refusals = [r["reason"] for r in peer.said("receipt") if not r["accepted"]]
            assert not any("chosen" in reason for reason in refusals)
            assert "drifted" not in peer.log()
            assert peer.stop() == "stopped"
        counts = [accepted(peer) for peer in peers]
        later = [sum(number in mine for mine in counts) for number in range(last + 2, last + 4)]
        assert later == [2, 2]
    finally:
        swarm.close()
