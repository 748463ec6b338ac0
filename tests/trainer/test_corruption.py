"""Span corruption: what is read and what is to be written make up the text, and nothing else."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.models import make_recipe
from tests.trainer.tiny_bases import adapt, make_base, make_learner
from trainer.data.batches import batches
from trainer.data.corruption import corrupt
from trainer.data.spans import num_hidden, window
from trainer.engine.learner import Learner
from trainer.families.base import SPANS, Batch
from trainer.parts import Special
from trainer.recipe import Choice, Optimizer
from trainer.text.tokenizer import Tokenizer, TokenizerError

PAD, END, FIRST, WORDS = 0, 1, 63, 24  # of T5's kind: sentinels are counted down from the last id
TEXT = ["one two three four five six seven eight"] * 40


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return make_tokenizer(tmp_path_factory.mktemp("t5") / "tokenizer.json")


def make_tokenizer(path: Path, num_sentinels: int = 30) -> Tokenizer:
    from tokenizers import Tokenizer as Encoder
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(64 - 3 - num_sentinels))]
    words[3:11] = TEXT[0].split()
    words += [f"<extra_id_{number}>" for number in reversed(range(num_sentinels))]
    encoder = Encoder(WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>"))
    encoder.pre_tokenizer = Whitespace()
    encoder.save(str(path))
    special = Special(pad="<pad>", end="</s>", start="", mask="", unknown="<unk>")
    return Tokenizer(path, 64, special)


def put_together(read: list[int], written: list[int]) -> list[int]:
    """The text again: each sentinel in what is read stands for what follows it in the other."""
    gaps: dict[int, list[int]] = {}
    for token in written[:-1]:
        if token > FIRST - 30:
            gaps[token] = current = []
        else:
            current.append(token)
    return [t for token in read[:-1] for t in gaps.get(token, [token])]


@given(length=st.integers(2, 90), seed=st.integers(0, 2**31))
def test_what_is_read_and_what_is_written_make_up_the_text(tokenizer, length, seed):
    row = torch.randint(3, 30, (length,), generator=torch.Generator().manual_seed(seed)).tolist()
    batch = corrupt([row], tokenizer, torch.Generator().manual_seed(seed))
    read, written = batch.ids[0].tolist(), batch.targets[0].tolist()
    assert read[-1] == written[-1] == END
    assert put_together(read, written) == row
    hidden, spans = num_hidden(length)
    sentinels = [token for token in read if token > FIRST - 30]
    assert sentinels == [FIRST - number for number in range(spans)]
    assert len(written) == hidden + spans + 1 and read[0] == row[0]
    assert not any(a in sentinels and b in sentinels for a, b in pairwise(read))


def test_the_paper_s_sizes_of_512_tokens_come_out():
    """Of T5's code: 568 tokens become an input of 512, and 114 to write."""
    assert window(512) == 568
    hidden, spans = num_hidden(568)
    assert (hidden, hidden + spans + 1) == (85, 114)


@pytest.mark.parametrize("length", range(8, 300, 7))
def test_inputs_are_as_long_as_sequences_may_be(length):
    hidden, spans = num_hidden(window(length))
    assert length - 2 <= window(length) - hidden + spans + 1 <= length


def test_rows_of_unlike_lengths_are_padded_and_padding_is_neither_read_nor_scored(tokenizer):
    rows = [list(range(3, 23)), list(range(3, 9)), [3]]
    batch = corrupt(rows, tokenizer, torch.Generator().manual_seed(0))
    assert batch.samples == 2  # nothing can be hidden of one token
    for number in range(2):
        read = batch.ids[number][batch.attention[number] == 1].tolist()
        written = batch.targets[number][batch.targets[number] != Batch.IGNORE].tolist()
        assert put_together(read, written) == rows[number]
    assert (batch.ids[batch.attention == 0] == PAD).all()


def test_the_same_seed_hides_the_same_and_another_one_something_else(tokenizer):
    def made(seed: int) -> list[list[int]]:
        stream = batches(TEXT, tokenizer, SPANS, length=32, size=lambda: 4, seed=seed)
        return [batch.ids.tolist() for batch in stream]

    assert made(1) == made(1) != made(2)


def test_too_few_sentinels_are_told_in_words(tmp_path):
    few = make_tokenizer(tmp_path / "tokenizer.json", num_sentinels=2)
    with pytest.raises(TokenizerError, match="has 2 sentinels"):
        corrupt([list(range(3, 33)) * 3], few, torch.Generator())


def learned(learner: Learner, tokenizer: Tokenizer) -> float:
    """The loss in the end, as a share of that in the beginning."""
    stream = batches(TEXT * 30, tokenizer, SPANS, length=16, size=lambda: 8, seed=0)
    losses = []
    for batch in stream:
        loss = learner.learn(batch) or 0.0
        losses.append(loss / learner.context.tokens)
        learner.accept(learner.offer().tensors, [])
    return sum(losses[-5:]) / sum(losses[:5])


def test_a_fresh_encoder_and_decoder_learns_what_was_hidden(tokenizer):
    assert learned(Learner(make_recipe("encoder_decoder"), PAD), tokenizer) < 0.8


def test_a_trained_one_learns_it_with_an_adapter(tokenizer, tmp_path):
    base = make_base(tmp_path / "base", "t5")
    options = Optimizer(learning_rate=0.01, warmup_rounds=0, schedule="constant")
    recipe = adapt(base, "t5", optimizer=options)
    recipe = recipe.model_copy(update={"family": Choice(name="pretrained_spans")})
    assert learned(make_learner(recipe, base), tokenizer) < 0.9
