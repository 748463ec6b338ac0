"""FedAvg and DiLoCo with real processes: unequal or limited local steps, and a late joiner."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.swarm.swarm import SENTENCES, Member, Swarm, history_of
from tests.waiting import wait_for
from trainer.data.survey import survey
from trainer.families.base import Objective
from trainer.recipe import Choice, Text
from trainer.text.tokenizer import Tokenizer

pytestmark = pytest.mark.swarm
MOST_STEPS = 25
PATIENCE_S = 120.0


def num_shared(coordinator: Member) -> int:
    return sum(verdict["members"] == 2 for verdict in coordinator.rounds())


def learn_together(swarm: Swarm) -> tuple[Member, Member, Member]:
    """A coordinator and a first peer; a second one comes after some rounds."""
    coordinator = swarm.open()
    first = swarm.add("first")
    wait_for("some rounds", lambda: coordinator.round >= 1, PATIENCE_S)
    late = swarm.add("late")
    wait_for(
        "shared rounds", lambda: sum(v["members"] == 2 for v in coordinator.rounds()) >= 3, 120
    )
    return coordinator, first, late


def assert_one_training(coordinator: Member, *peers: Member) -> None:
    """All members, which end here, tell of the same rounds, and the model is better than none."""
    for peer in peers:
        assert any(receipt["accepted"] for receipt in peer.said("receipt"))
        assert "drifted" not in peer.log()
        assert peer.stop() == "stopped"
    assert coordinator.stop() == "stopped"
    by_round = history_of(coordinator, *peers)
    assert {verdict["outcome"] for verdict in by_round.values()} == {"clean"}
    assert by_round[max(by_round)]["loss"] < 0.8 * math.log(320)  # of 320 tokens, all alike


@pytest.mark.soak
def test_fedavg_peers_take_as_many_local_steps_as_they_manage(tmp_path: Path):
    swarm = Swarm(tmp_path, target_samples=600)
    swarm.recipe = swarm.recipe.model_copy(update={"strategy": Choice(name="fedavg")})
    try:
        coordinator, *peers = learn_together(swarm)
        assert_one_training(coordinator, *peers)
    finally:
        swarm.close()


@pytest.mark.soak
def test_by_passes_a_device_with_more_text_of_its_own_takes_more_steps(tmp_path: Path):
    """Neither the target nor the deadline ends a round here."""
    swarm = Swarm(tmp_path, target_samples=10**7, deadline_s=3600)
    swarm.recipe = swarm.recipe.model_copy(
        update={
            "strategy": Choice(name="fedavg", params={"most_passes": 2}),
            "texts": (Text(kind="private"),),
        }
    )
    try:
        coordinator = swarm.open()
        tokenizer, samples = Tokenizer(swarm.tokenizer, 320), {}
        for name, lines in {"little": 60, "much": 300}.items():
            own = tmp_path / f"{name}.txt"
            own.write_text("\n".join(f"{SENTENCES[n % 4]} {n}" for n in range(lines)))
            samples[name] = survey(
                own, tokenizer, Objective("masked"), swarm.recipe.sequence_length
            ).samples
            swarm.add(name, text=str(own))
        wait_for("shared rounds", lambda: num_shared(coordinator) >= 3, PATIENCE_S)
        batch = swarm.recipe.micro_batch
        for name, own_samples in samples.items():
            peer, wanted = swarm.members[name], batch * math.ceil(2 * own_samples / batch)
            assert {r["samples"] for r in peer.said("receipt") if r["accepted"]} == {wanted}
            assert peer.stop() == "stopped"
        assert samples["much"] > 4 * samples["little"]
        shown = {progress["reason"] for progress in swarm.members["little"].said("progress")}
        wait = f"went 2 times through its own {samples['little']} samples; waiting for the others"
        assert wait in shown
    finally:
        swarm.close()


def test_diloco_peers_wait_for_each_other_after_their_most_local_steps(tmp_path: Path):
    """The target cannot end a round here."""
    swarm = Swarm(tmp_path, target_samples=10**7, deadline_s=3600)
    strategy = Choice(name="diloco", params={"most_local_steps": MOST_STEPS})
    swarm.recipe = swarm.recipe.model_copy(update={"strategy": strategy})
    try:
        coordinator, *peers = learn_together(swarm)
        most = MOST_STEPS * swarm.recipe.micro_batch
        for peer in peers:
            assert max(receipt["samples"] for receipt in peer.said("receipt")) == most
        wait = f"took its {MOST_STEPS} local steps; waiting for the others"
        assert wait in {p["reason"] for peer in peers for p in peer.said("progress")}
        assert_one_training(coordinator, *peers)
    finally:
        swarm.close()
