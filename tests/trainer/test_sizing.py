"""The micro-batch that each device finds for itself: a second's work, in the memory there is."""

from __future__ import annotations

import resource
import subprocess
import sys
from ctypes import CDLL
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.trainer.models import make_batch, make_recipe
from tests.trainer.rehearsals import make_plan
from trainer import catalogue
from trainer.device import memory
from trainer.engine.learner import Learner
from trainer.engine.sizing import DoesNotFit, Sizer
from trainer.recipe import Choice, Round
from trainer.simulator.run import Rehearsal

ROOT = Path(__file__).resolve().parents[2]
LARGE = Round(target_samples=4096, matchmaking_s=3)


def recipe(**changes):
    return make_recipe(**{"micro_batch": None, "round": LARGE, **changes})


def sizer(path=None, room=2**62, device="cpu", **changes) -> Sizer:
    return Sizer(recipe(**changes), device, path, room=lambda: room)


def train(one: Sizer, seconds_a_sample: float, batches: int = 20, bytes_a_sample: int = 0) -> int:
    """A device of this speed; the size it comes to."""
    for _ in range(batches):
        held = one._base_bytes + one.rows * bytes_a_sample
        one.took(one.batch, one.batch * seconds_a_sample, held)
    return one.batch


@pytest.mark.parametrize(("seconds", "found"), [(0.03, 32), (0.2, 4), (0.6, 1), (12.0, 1)])
def test_a_micro_batch_comes_to_about_a_second(seconds: float, found: int):
    assert train(sizer(), seconds) == found


def test_a_slow_first_micro_batch_and_a_busy_moment_change_nothing():
    one = sizer()
    one.took(1, 9.0, 0)
    assert train(one, 0.03) == 32
    one.took(32, 9.0, 0)
    one.took(32, 9.0, 0)
    assert train(one, 0.03) == 32


def test_how_fast_a_device_is_is_known_once_it_took_its_size_twice():
    one, settled = sizer(), []
    for seconds in (9.0, 0.03, 0.03, 0.6, 0.6):  # the first pass of a process, two that are quick
        one.took(one.batch, seconds, 0)
        settled.append(one.is_settled)
    assert settled == [False, False, False, False, True] and one.batch == 4


def test_a_device_that_became_slower_takes_less_at_once():
    one = sizer()
    train(one, 0.03)
    assert train(one, 0.25) == 8


def test_the_swarms_target_bounds_what_a_fast_device_takes_at_once():
    assert train(sizer(), 1e-6) == 4096 // 8
    assert train(sizer(round=Round(target_samples=4)), 1e-6) == 1
    bound = LARGE.enough_samples() + train(sizer(), 1e-6)
    assert bound < LARGE.most_samples()


def test_it_stops_where_twice_as_many_would_not_leave_memory_to_spare():
    assert train(sizer(room=100 * 2**20), 1e-6, bytes_a_sample=10 * 2**20) == 8


def test_after_memory_ran_out_it_takes_half_and_never_as_much_again(tmp_path: Path):
    one = sizer(tmp_path / "kept")
    train(one, 0.03)
    assert one.ran_out() == "32 sequences at once did not fit in memory; now it takes 16"
    assert train(one, 0.001) == 16
    assert train(sizer(tmp_path / "kept"), 0.001) == 16


def test_a_device_without_room_for_one_sequence_keeps_less_of_it_and_then_says_so(tmp_path):
    one = sizer(tmp_path / "kept")
    assert not one.recomputes
    assert "computes it again" in one.ran_out()
    assert one.recomputes and sizer(tmp_path / "kept").recomputes
    with pytest.raises(DoesNotFit, match="not even one sequence of 16 tokens fits"):
        one.ran_out()
    group = Sizer(recipe(), "cpu", may_recompute=False)
    with pytest.raises(DoesNotFit):
        group.ran_out()


def test_a_pass_that_is_known_to_be_too_large_is_not_tried():
    for pass_bytes, recomputes in ((2**30 + 1, True), (2**30, False)):
        one = Sizer(recipe(), "cpu", room=lambda: 2**30, pass_bytes=pass_bytes)
        assert one.recomputes is recomputes


@pytest.mark.parametrize("family", ["albert", "causal", "llama"])
def test_what_is_computed_again_gives_the_same_gradient_and_takes_less_memory(family: str):
    batch = make_batch(3, rows=4)
    kept, gradients = [], []
    for recomputes in (False, True):
        learner = Learner(make_recipe(family), pad_id=0)
        if recomputes:
            learner.recompute()
            learner.recompute()  # once more changes nothing
        kept.append(bytes_kept(lambda one=learner: one.learn(batch)))
        gradients.append([tensor.clone() for tensor in learner.context.gradient])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)
    assert kept[1] < 0.7 * kept[0]


def bytes_kept(act) -> int:
    """By different tensors that autograd saves outside of what is computed again."""
    seen: dict[int, int] = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        act()
    return sum(seen.values())


def test_what_was_found_is_kept_for_this_recipe_on_this_device(tmp_path: Path):
    kept = tmp_path / "kept"
    train(sizer(kept), 0.03)
    assert sizer(kept).batch == 32
    assert sizer(kept, device="a faster one").batch == 1
    assert sizer(kept, seed=5).batch == 1
    kept.write_text('{"rows": ')
    assert sizer(kept).batch == 1


def test_a_device_whose_single_sequence_takes_too_long_is_told_so():
    one = sizer()
    train(one, 12.0, batches=2)
    assert one.trouble() == ""
    train(one, 12.0)
    assert one.trouble() == (
        "one sequence takes 12 s here and the others wait 3 s: this device may miss rounds"
    )


def test_a_size_that_the_recipe_fixes_is_kept_and_only_handled_in_smaller_parts(tmp_path: Path):
    one = sizer(tmp_path / "kept", micro_batch=8)
    assert (train(one, 0.001), train(one, 30.0)) == (8, 8)
    one.ran_out()
    assert (one.batch, one.rows) == (8, 4)


def test_strategies_that_step_after_each_micro_batch_need_its_size_in_the_recipe():
    catalogue.check(recipe())
    for name in ("fedavg", "fednova", "fedprox", "scaffold", "diloco"):
        with pytest.raises(ValueError, match="give micro_batch a number"):
            catalogue.check(recipe(strategy=Choice(name=name)))
        catalogue.check(recipe(strategy=Choice(name=name), micro_batch=8))


def test_in_parts_or_at_once_or_one_by_one_a_batch_teaches_the_same():
    whole, parts = (Learner(make_recipe(), pad_id=0) for _ in range(2))
    batch = make_batch(3, rows=5)
    assert parts.learn(batch, rows=2) == pytest.approx(whole.learn(batch), rel=1e-5)
    for one, other in zip(whole.context.gradient, parts.context.gradient, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert whole.context.tokens == parts.context.tokens and parts.context.steps == 1


TAKES_TOO_MUCH = """
import resource, torch
from trainer.device import memory
resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
try:
    torch.zeros(2**34)
except RuntimeError as error:
    print(memory.ran_out(error))
"""


def test_torchs_word_for_memory_that_ran_out_is_known():
    done = subprocess.run(
        [sys.executable, "-c", TAKES_TOO_MUCH], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"
    assert memory.ran_out(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert not memory.ran_out(RuntimeError("shapes do not match"))


def test_memory_is_counted_of_this_process_and_its_children():
    before = memory.used_bytes()
    block = torch.ones(2**25)
    assert 0.8 * 2**27 < memory.used_bytes() - before < 1.5 * 2**27
    assert 2**27 < memory.own_bytes() <= memory.used_bytes() * 1.1
    del block
    child = "x = b'1' * 2**27; print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert memory.children_bytes() > 2**27
        process.kill()
    assert memory.available_bytes() < memory.room_bytes() < memory.available_bytes() + 2**33
    assert memory.available_bytes() <= resource.getpagesize() * 2**40


def test_what_is_freed_goes_back_to_the_system():
    blocks = [torch.ones(2**14) for _ in range(2000)]  # too small for pages of their own
    last = torch.ones(2**14)
    held = memory.used_bytes()
    del blocks
    memory.give_back()
    assert held - memory.used_bytes() > 100 * 2**20 or not hasattr(CDLL(None), "malloc_trim")
    del last


def test_a_swarm_of_unequal_devices_finds_its_sizes_and_keeps_every_sample(tmp_path: Path):
    plan = make_plan(tmp_path)
    automatic = plan.recipe.model_copy(update={"micro_batch": None})
    done = Rehearsal(replace(plan, recipe=automatic, samples_per_s=8.0)).run()
    assert done["reached"] and done["attempts"] == {"clean": plan.rounds}
    assert done["samples"]["in_the_model"] == done["samples"]["receipts"] > 0


def test_memory_that_runs_out_in_a_round_costs_a_few_samples_and_no_round(tmp_path, monkeypatch):
    honest = Learner.learn

    def learn(self, batch, rows=0):
        if rows > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return honest(self, batch, rows)

    monkeypatch.setattr(Learner, "learn", learn)
    done = Rehearsal(make_plan(tmp_path)).run()
    assert done["reached"] and done["stuck"] == []
    assert done["last_loss"] < done["first_loss"]
