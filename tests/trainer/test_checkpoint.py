"""Checkpoints: whole or not there, shared weights once, and the one before a broken one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from tests.trainer.models import SHAPES, make_batch, make_recipe, play_round
from trainer.engine import checkpoint
from trainer.engine.coordinator import resume
from trainer.engine.learner import Learner


def trained(name: str = "albert", rounds: int = 2) -> Learner:
    learner = Learner(make_recipe(name), pad_id=0)
    for number in range(rounds):
        play_round(learner, make_batch(number))
    return learner


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_c11_tied_weights_are_stored_once_and_stay_tied(name: str, tmp_path: Path):
    learner = trained(name)
    learner.save(tmp_path / "c.safetensors")
    with safe_open(tmp_path / "c.safetensors", framework="pt") as file:
        stored = [key for key in file.keys() if key.startswith("model.")]  # noqa: SIM118
    assert len(stored) == len(learner.params)
    expected = learner.family.parameter_count(64)
    assert sum(p.numel() for p in learner.params) == expected
    assert (tmp_path / "c.safetensors").stat().st_size < expected * 4 * 3 * 1.1 + 20_000

    same = Learner(make_recipe(name), pad_id=0)
    same.load(tmp_path / "c.safetensors")
    word, out = same.model.get_input_embeddings(), same.model.get_output_embeddings()
    assert word.weight.data_ptr() == out.weight.data_ptr()
    for model in (same.model, learner.model):
        model.eval()
    losses = [one.family.loss_sum(one.model, make_batch(3)) for one in (same, learner)]
    assert torch.equal(*losses)


def test_a11_a_checkpoint_carries_round_learning_rate_and_moments(tmp_path: Path):
    learner = trained(rounds=20)
    learner.save(tmp_path / checkpoint.filename(20))
    again = Learner(make_recipe(), pad_id=0)
    resume(again, tmp_path)
    assert again.round == 20
    assert again.context.learning_rate == learner.context.learning_rate
    state = again.optimizer.state[again.params[0]]
    assert float(state["step"]) == 20 and state["exp_avg_sq"].any()
    for one in (learner, again):
        play_round(one, make_batch(50))
    assert torch.equal(again.params[0], learner.params[0])


def damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "empty":
        content = bytearray()
    elif how == "half":
        content = content[: len(content) // 2]
    else:
        content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["empty", "half", "one byte"])
def test_a15_the_checkpoint_before_a_damaged_one_is_used(how: str, tmp_path: Path, caplog):
    learner = trained(rounds=1)
    learner.save(tmp_path / checkpoint.filename(1))
    play_round(learner, make_batch(7))
    learner.save(tmp_path / checkpoint.filename(2))
    damage(tmp_path / checkpoint.filename(2), how)
    again = Learner(make_recipe(), pad_id=0)
    resume(again, tmp_path)
    assert again.round == 1
    assert checkpoint.filename(2) in caplog.text


def test_a15_a_full_disk_leaves_the_old_checkpoint_and_no_draft(tmp_path: Path, monkeypatch):
    learner = trained(rounds=1)
    path = tmp_path / checkpoint.filename(1)
    learner.save(path)
    before = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        learner.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path: Path):
    trained().save(tmp_path / "c.safetensors")
    other = Learner(make_recipe(seed=1), pad_id=0)
    with pytest.raises(checkpoint.BadCheckpoint, match="another recipe"):
        other.load(tmp_path / "c.safetensors")


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path):
    for number in (9, 1, 100, 20):
        (tmp_path / checkpoint.filename(number)).touch()
    checkpoint.prune(tmp_path, kept=2)
    assert [p.name for p in checkpoint.newest_first(tmp_path)] == [
        checkpoint.filename(100),
        checkpoint.filename(20),
    ]
