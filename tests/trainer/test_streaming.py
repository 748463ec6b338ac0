"""A frozen base that stays on disk: the same losses and gradients, with less memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.trainer.averaging import end_round
from tests.trainer.models import make_batch, play_round
from tests.trainer.tiny_bases import MAKES, adapt, described, lora, top_layers
from trainer import catalogue
from trainer.device import memory
from trainer.engine import checkpoint, sizing, streaming
from trainer.engine.learner import Learner
from trainer.planner.fit import judge_machine
from trainer.planner.need import need_of
from trainer.planner.ways import Way, ways_of
from trainer.recipe import Choice

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = {"lora": lora(), "freeze_a": lora(mode="freeze_a"), "top_layers": top_layers(1)}
CASES = [(m, a) for m in MAKES for a in ADAPTERS if (m, a) != ("albert", "top_layers")]
MIB = 2**20


def pair(recipe, folder):
    """One that holds the base and one that reads it, away from where both began."""
    found = [Learner(recipe, 0, folder, streams=streams) for streams in (False, True)]
    for learner in found:
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for param in learner.params:
                param.add_(torch.randn(param.shape, generator=generator) * 0.1)
    return found


def held_of_base(learner):
    """Bytes of the frozen parameters, each storage once."""
    frozen = [p.untyped_storage() for p in learner.model.parameters() if not p.requires_grad]
    return sum({one.data_ptr(): one.nbytes() for one in frozen}.values())


@pytest.mark.parametrize(("make", "adapter"), CASES)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_losses_and_gradients_are_those_of_a_base_that_is_held(base_of, make, adapter, precision):
    folder = base_of(make)
    base = described(folder).model_copy(update={"precision": precision})
    recipe = adapt(folder, make, adapter=ADAPTERS[adapter], base=base)
    held, streams = pair(recipe, folder)
    assert streams.names == held.names
    losses = [learner.learn(make_batch(1)) for learner in (held, streams)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
    for one, other in zip(held.context.gradient, streams.context.gradient, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
    assert streams.evaluate([make_batch(2)]) == pytest.approx(held.evaluate([make_batch(2)]))


@pytest.mark.parametrize(("make", "adapter"), CASES)
def test_between_passes_nothing_of_the_base_is_held(base_of, make, adapter):
    folder = base_of(make)
    held, streams = pair(adapt(folder, make, adapter=ADAPTERS[adapter]), folder)
    streams.learn(make_batch(1))
    kept_as_it_is = sum(t.nbytes for t in streams.adapted.kept().values())
    assert held_of_base(streams) - kept_as_it_is < 0.02 * held_of_base(held)


@pytest.mark.parametrize("adapter", list(ADAPTERS))
def test_who_holds_the_base_and_who_reads_it_are_members_of_one_swarm(base_of, tmp_path, adapter):
    recipe = adapt(base_of(), adapter=ADAPTERS[adapter], strategy=Choice(name="fedavg"))
    peers = [Learner(recipe, 0, base_of(), streams=streams) for streams in (False, True)]
    assert peers[0].fingerprint() == pytest.approx(peers[1].fingerprint(), rel=1e-6)
    for number in range(3):
        for seed, peer in enumerate(peers):
            peer.learn(make_batch(10 * seed + number))
        end_round(peers)
    for one, other in zip(peers[0].params, peers[1].params, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
    peers[0].save(path := tmp_path / checkpoint.filename(3))
    newcomer = Learner(recipe, 0, base_of(), streams=True)
    newcomer.load(path)
    assert newcomer.evaluate([make_batch(9)]) == pytest.approx(peers[0].evaluate([make_batch(9)]))
    losses = [play_round(newcomer, make_batch(n), make_batch(100 + n)) for n in range(20)]
    assert sum(losses[-5:]) < sum(losses[:5])


def test_it_says_so_and_keeps_little_of_a_pass(base_of):
    held, streams = pair(adapt(base_of()), base_of())
    assert held.thrift == "" and streams.thrift == streaming.IN_WORDS and streams.recomputes
    held.recompute()
    assert "computed again" in held.thrift


def test_files_without_a_prefix_and_in_several_parts_are_read(base_of, tmp_path):
    """As GPT-2's own file, which says `h.0.…` where the model says `transformer.h.0.…`."""
    named = load_file(base_of("gpt2") / "model.safetensors")
    plain = {name.removeprefix("transformer."): tensor for name, tensor in named.items()}
    parts = [dict(list(plain.items())[start::2]) for start in (0, 1)]
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    for name, part in zip(names, parts, strict=True):
        save_file(part, tmp_path / name, metadata={"format": "pt"})
    index = {k: name for name, part in zip(names, parts, strict=True) for k in part}
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": index})
    )
    (tmp_path / "config.json").write_bytes((base_of("gpt2") / "config.json").read_bytes())
    for adapter in (lora(), top_layers(1)):
        held, streams = pair(adapt(tmp_path, "gpt2", adapter=adapter), tmp_path)
        assert streams.learn(make_batch(1)) == pytest.approx(held.learn(make_batch(1)), rel=1e-6)


def test_a_weight_that_the_files_call_otherwise_is_said_and_not_made_up(base_of, tmp_path):
    named = load_file(base_of() / "model.safetensors")
    moved = {name.replace("down_proj", "down"): tensor for name, tensor in named.items()}
    save_file(moved, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_bytes((base_of() / "config.json").read_bytes())
    recipe = adapt(tmp_path, adapter=lora(targets="q_proj"))
    with pytest.raises(ValueError, match=r"the base's files have no .*down_proj"):
        Learner(recipe, 0, tmp_path, streams=True)


PEAK = """
import sys
from pathlib import Path
import torch
from trainer.device import memory
from trainer.engine.learner import Learner
from trainer.families.base import Batch
from trainer.recipe import Recipe
import peft, transformers.models.llama.modeling_llama
torch.set_num_threads(1)
before = memory.used_bytes()
recipe = Recipe.model_validate_json(Path(sys.argv[1]).read_text())
learner = Learner(recipe, 0, Path(sys.argv[1]).parent, streams=sys.argv[2] == "streams")
ids = torch.arange(32)[None] % recipe.tokenizer.vocab_size
losses = [learner.learn(Batch(ids, ids, torch.ones_like(ids)))]
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(1024 * int(peak.split()[1]) - before, *losses)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is told by Linux")
def test_a_real_process_that_reads_its_base_has_less_memory_at_its_peak(tmp_path):
    """A model of 60 M parameters, 240 MB, of which the largest layer is 14."""
    sizes = {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 17}
    config = transformers.LlamaConfig(
        **sizes, vocab_size=64, num_attention_heads=8, tie_word_embeddings=True
    )
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    recipe = adapt(tmp_path)
    assert recipe.base.parameters == pytest.approx(58e6, rel=0.05)
    (tmp_path / "recipe.json").write_text(recipe.model_dump_json())
    peaks, losses = [], []
    for kind in ("holds", "streams"):
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(tmp_path / "recipe.json"), kind],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        peak, *found = map(float, done.stdout.split()[-3:])
        peaks.append(peak)
        losses.append(found)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert peaks[0] > 4 * recipe.base.parameters  # all of it, and more
    assert peaks[1] < 0.5 * peaks[0]


def test_the_way_gets_thriftier_the_less_memory_there_is(base_of):
    """What each way asks of a machine falls, and a machine gets the first that fits."""
    recipe = adapt(base_of(), sequence_length=4096, micro_batch=8)
    big = recipe.base.model_copy(
        update={
            "parameters": 300_000_000,
            "matrices": tuple(
                m.model_copy(update={"count": 30, "inputs": 1000, "outputs": 1000})
                for m in recipe.base.matrices
            ),
            "stack": recipe.base.stack.model_copy(update={"layers": (9_000_000,) * 30}),
        }
    )
    recipe = recipe.model_copy(update={"base": big})
    needs = [need_of(recipe, way=way).total for way in ways_of(recipe)]
    assert needs[0] > needs[1] > needs[2]
    assert "frozen base" not in {part.name for part in need_of(recipe, way=Way.STREAMED).parts}
    for way, needed in zip(ways_of(recipe), needs, strict=True):
        just = judge_machine(recipe, int(needed / 0.75) + 10)
        assert just.fits and just.way is way and just.words.endswith(way.words)
    short = judge_machine(recipe, int(needs[2] / 0.75) - 10**6)
    assert not short.fits and "does not fit, because it needs" in short.words


def test_only_a_base_that_is_frozen_and_not_packed_can_be_read_as_it_is_needed(base_of):
    recipe = adapt(base_of())
    assert Way.STREAMED in ways_of(recipe)
    packed = recipe.base.model_copy(update={"precision": "nf4"})
    for other in ({"adapter": None}, {"base": packed}):
        assert Way.STREAMED not in ways_of(recipe.model_copy(update=other))


def test_a_device_reads_its_base_when_nothing_else_fits_and_not_before(base_of, monkeypatch):
    recipe = adapt(base_of())
    needed = need_of(recipe, way=Way.RECOMPUTED).total
    for free, streams in ((needed + MIB, False), (needed - MIB, True)):
        monkeypatch.setattr(memory, "room_bytes", lambda free=free: free)
        assert sizing.must_stream(recipe) is streams
    assert not sizing.must_stream(recipe.model_copy(update={"adapter": None}))


def test_a_device_that_is_short_of_memory_begins_with_as_many_sequences_as_fit(
    base_of, tmp_path, monkeypatch
):
    recipe = adapt(base_of(), micro_batch=8)
    learner = Learner(recipe, 0, base_of(), streams=True)
    family = catalogue.family_of(recipe)
    room = sizing.activation_bytes(family, recipe, 3, recomputes=True)
    monkeypatch.setattr(memory, "available_bytes", lambda: room)
    sizer = sizing.make_sizer(learner, tmp_path)
    assert (sizer.batch, sizer.rows, sizer.recomputes) == (8, 2, True)
