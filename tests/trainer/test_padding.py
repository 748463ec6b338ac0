"""What is padding, or has nothing to guess, teaches no model anything."""

from __future__ import annotations

import pytest
import torch

from tests.trainer.models import SHAPES, VOCABULARY, make_batch, make_recipe
from trainer.engine.learner import Learner
from trainer.families.base import Batch
from trainer.recipe import Choice

FAMILIES = sorted(SHAPES)
PAD, END = 2, 12  # from this place on all is padding


def padded_with(filler: int) -> Batch:
    whole = make_batch(1)
    attention = (torch.arange(whole.ids.shape[1]) < END).long().expand_as(whole.ids)
    ids = whole.ids.where(attention == 1, filler)
    return Batch(ids, whole.targets.masked_fill(attention == 0, Batch.IGNORE), attention)


def learned(learner: Learner, batch: Batch) -> tuple[float, torch.Tensor]:
    learner.begin()
    loss = learner.learn(batch)
    assert loss is not None
    return loss, torch.cat([tensor.flatten() for tensor in learner.context.gradient])


@pytest.mark.parametrize("name", FAMILIES)
def test_c16_a_model_has_the_words_and_the_padding_of_its_tokenizer(name: str):
    learner = Learner(make_recipe(name), PAD)
    config = learner.model.config
    words = learner.model.get_input_embeddings().weight.shape[0]
    assert words == config.vocab_size == VOCABULARY and config.pad_token_id == PAD
    (loss, gradient), (other_loss, other) = (
        learned(learner, padded_with(filler)) for filler in (PAD, 40)
    )
    assert loss == pytest.approx(other_loss, rel=1e-6)
    torch.testing.assert_close(gradient, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
@pytest.mark.parametrize("name", FAMILIES)
def test_c09_a_pass_in_which_nothing_is_to_be_guessed_changes_nothing(name: str, kind):
    learner = Learner(make_recipe(name), PAD, computes=kind)
    some = make_batch(1)
    loss, gradient = learned(
        learner, Batch(some.ids, torch.full_like(some.ids, Batch.IGNORE), some.attention)
    )
    assert loss == 0 and not gradient.any()


@pytest.mark.parametrize("tied", [True, False])
def test_c16_a_token_that_is_padding_and_ends_documents_too_is_learned(tied: bool):
    family = Choice(name="llama", params=SHAPES["llama"] | {"tied": tied})
    learner = Learner(make_recipe().model_copy(update={"family": family}), PAD)
    batch = padded_with(PAD)
    batch.ids[:, 5] = PAD
    learner.learn(batch)
    assert learner.model.get_input_embeddings().weight.grad[PAD].any()
