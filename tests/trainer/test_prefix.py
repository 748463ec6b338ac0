"""Prefix-LM: the prefix is read both ways, and no target sees what comes after it."""

from __future__ import annotations

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.models import SHAPES, make_recipe
from trainer.data.prefix import cut
from trainer.engine.export import export
from trainer.engine.learner import Learner
from trainer.families.base import Batch
from trainer.families.prefix import visible
from trainer.recipe import Choice

LENGTH, PREFIX_LENGTH, PADDED = 10, 4, 2


def make_learner(**sizes) -> Learner:
    family = Choice(name="prefix", params=SHAPES["prefix"] | sizes)
    return Learner(make_recipe().model_copy(update={"family": family}), pad_id=0)


def one_sequence(prefix: int = PREFIX_LENGTH) -> Batch:
    """Of ten places, of which the last two are padding."""
    ids = 5 + torch.arange(LENGTH)[None]
    attention = (torch.arange(LENGTH) < LENGTH - PADDED).long()[None]
    is_target = (torch.arange(LENGTH)[None] >= prefix) & (attention == 1)
    return Batch(ids, ids.masked_fill(~is_target, Batch.IGNORE), attention)


def may_see(place: int, other: int, prefix: int = PREFIX_LENGTH) -> bool:
    """The figure in the paper, in words."""
    return other < LENGTH - PADDED and (other <= place or other < prefix)


@pytest.mark.parametrize("sizes", [{}, {"heads": 4, "key_heads": 2, "layers": 3}])
def test_what_a_place_makes_depends_on_all_it_may_see_and_on_nothing_else(sizes):
    """By the gradient of each place's output, after all layers, on each word vector."""
    learner, batch = make_learner(**sizes), one_sequence()
    words = learner.model.model.embed_tokens(batch.ids).detach().requires_grad_()
    out = learner.model.model(inputs_embeds=words, attention_mask=visible(batch)).last_hidden_state
    for place in range(LENGTH):
        (slope,) = torch.autograd.grad(out[0, place].sum(), words, retain_graph=True)
        depends = (slope[0] != 0).any(-1).tolist()
        read = [o for o in range(LENGTH) if may_see(place, o) or o == place >= LENGTH - PADDED]
        assert [other for other, on in enumerate(depends) if on] == read


def scores(learner: Learner, batch: Batch) -> torch.Tensor:
    with torch.no_grad():
        return learner.model(input_ids=batch.ids, attention_mask=visible(batch)).logits[0]


def changed(batch: Batch, place: int) -> Batch:
    ids = batch.ids.clone()
    ids[0, place] += 20
    return Batch(ids, batch.targets, batch.attention)


def test_another_target_changes_no_score_before_it_and_another_prefix_all_of_them():
    learner, batch = make_learner(), one_sequence()
    before = scores(learner, batch)
    later = scores(learner, changed(batch, 6))
    assert torch.equal(later[:6], before[:6])
    assert not torch.equal(later[6], before[6])
    at_its_end = scores(learner, changed(batch, PREFIX_LENGTH - 1))
    assert all(not torch.equal(a, b) for a, b in zip(at_its_end, before, strict=True))
    padding = scores(learner, changed(batch, LENGTH - 1))
    assert torch.equal(padding[: LENGTH - PADDED], before[: LENGTH - PADDED])


def test_the_loss_is_of_what_comes_after_the_prefix_alone():
    learner, batch = make_learner(), one_sequence()
    said = scores(learner, batch).log_softmax(-1)
    wanted = range(PREFIX_LENGTH, LENGTH - PADDED)
    loss = -sum(said[place - 1, batch.ids[0, place]] for place in wanted)
    assert batch.tokens == len(wanted)
    assert learner.learn(batch) == pytest.approx(float(loss), rel=1e-5)


@given(length=st.integers(2, 40), seed=st.integers(0, 2**31))
def test_every_cut_leaves_a_prefix_and_something_to_write(length, seed):
    ids = torch.arange(3, 3 + 2 * 40).view(2, 40)
    attention = torch.ones_like(ids)
    attention[1, length:] = 0
    batch = cut(ids, attention, torch.Generator().manual_seed(seed))
    for row, end in ((0, 40), (1, length)):
        places = (batch.targets[row] != Batch.IGNORE).nonzero().flatten().tolist()
        assert places and places[0] >= 1 and places == list(range(places[0], end))
        assert torch.equal(batch.targets[row, places], ids[row, places])


def test_cuts_are_even_and_follow_from_the_seed():
    ids = torch.ones(4000, 9, dtype=torch.int64)
    batch, again = (cut(ids, ids, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(batch.targets, again.targets)
    prefixes = (batch.targets == Batch.IGNORE).sum(1).bincount(minlength=10)
    assert prefixes[[0, 9]].tolist() == [0, 0]
    assert (prefixes[1:9] - 500).abs().max() < 100  # the deviation is 21


def test_an_exported_model_that_is_given_the_mask_goes_on_with_a_text_as_it_was_trained(
    tmp_path,
):
    """As the organiser guide says it."""
    learner = make_learner(heads=4, key_heads=2)
    learner.save(tmp_path / "checkpoint")
    export(tmp_path / "checkpoint", learner.recipe, None, 0, tmp_path / "out")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    ids = torch.tensor([[7, 8, 9, 10, 11]])
    length = ids.shape[1]
    everything = torch.ones(1, 1, length, length, dtype=torch.bool)
    read = model(ids, attention_mask=everything, use_cache=True)
    begun = torch.cat([ids, read.logits[:, -1:].argmax(-1)], dim=1)
    said = model.generate(begun, cache=read.cache, max_new_tokens=5, do_sample=False)
    whole = ids
    for _ in range(6):
        targets = whole.masked_fill(torch.arange(whole.shape[1]) < length, Batch.IGNORE)
        batch = Batch(whole, targets, torch.ones_like(whole))
        whole = torch.cat([whole, scores(learner, batch)[-1:].argmax(-1)[None]], dim=1)
    assert torch.equal(said, whole)
    plain = model(ids).logits
    assert not torch.allclose(plain, read.logits)
