"""Real processes that train LoRA on one base: only adapters travel, and all hold the same."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.swarm.swarm import Swarm
from tests.trainer.tiny_bases import lora, make_base
from tests.waiting import wait_for
from trainer import catalogue
from trainer.bases import describe
from trainer.engine import checkpoint
from trainer.recipe import Choice

pytestmark = pytest.mark.swarm


def test_two_peers_and_a_late_one_train_adapters_of_one_base(tmp_path: Path):
    folder = make_base(tmp_path / "base", vocab_size=320)
    swarm = Swarm(tmp_path, target_samples=400)
    swarm.base = folder
    swarm.recipe = swarm.recipe.model_copy(
        update={
            "family": Choice(name="pretrained_causal"),
            "strategy": Choice(name="fedavg"),
            "base": describe(folder),
            "adapter": lora(rank=4),
        }
    )
    try:
        coordinator = swarm.open()
        peers = [swarm.add(name) for name in ("first", "second")]
        wait_for("shared rounds", lambda: shared(coordinator.rounds(), 2) >= 2, 120)
        peers.append(swarm.add("late"))
        wait_for("rounds of three", lambda: shared(coordinator.rounds(), 3) >= 2, 120)
        seen = coordinator.rounds()
        assert {verdict["outcome"] for verdict in seen} == {"clean"}
        for receipt in peers[0].said("receipt"):  # what is averaged for the page alone is no change
            assert receipt["norm"] == pytest.approx(receipt["drift"], rel=1e-4)
        assert seen[-1]["loss"] < seen[0]["loss"] < 2 * math.log(320)
        for peer in peers:
            assert "drifted" not in peer.log()
            assert peer.stop() == "stopped"
        assert coordinator.stop() == "stopped"
    finally:
        swarm.close()
    newest = next(checkpoint.newest_first(coordinator.folder / "checkpoints"))
    stored = load_file(newest)
    assert sum(t.numel() for t in stored.values()) == catalogue.trained_parameters(swarm.recipe)
    assert all(".lora_" in name for name in stored)


def shared(verdicts: list[dict], members: int) -> int:
    return sum(verdict["members"] == members for verdict in verdicts)
