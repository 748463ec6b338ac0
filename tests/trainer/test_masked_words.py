"""Masked models: whole words, and pairs of segments whose order is to be told."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
import torch

from tests.trainer.models import SHAPES, make_recipe
from trainer.data.batches import batches
from trainer.data.masking import CHOSEN_SHARE, mask
from trainer.data.pairs import ENDS, pair_up
from trainer.engine.learner import Learner
from trainer.families.albert import Albert, Params
from trainer.families.base import Batch, Objective
from trainer.recipe import Choice, Optimizer
from trainer.recipe import Tokenizer as Vocabulary
from trainer.text.tokenizer import Tokenizer, TokenizerError, train_tokenizer

NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
TALE = ["The beginning is an alpha. The end is an omega."]
COUNTING = [
    " ".join(f"Now comes {NUMBERS[first + step]} of them." for step in range(4))
    for first in range(9)
]
WORDS, PAIRS = Objective("masked", whole_words=True), Objective("masked", pairs=True)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    train_tokenizer(COUNTING + TALE, path, 300)  # few of the words are one token
    return Tokenizer(path, 300)


def joined(parts: Iterable[list[int]]) -> list[int]:
    return [token for part in parts for token in part]


def words_of(tokenizer: Tokenizer, ids: list[int]) -> list[list[int]]:
    """The places of each word."""
    found: list[list[int]] = []
    for place, token in enumerate(ids):
        if tokenizer.word_starts[token] or not found:
            found.append([])
        found[-1].append(place)
    return found


def test_of_a_word_all_tokens_are_masked_or_none(tokenizer: Tokenizer):
    stream = batches(COUNTING * 60, tokenizer, WORDS, length=64, size=lambda: 8, seed=1)
    chosen = total = longer = 0
    for batch in stream:
        for row in range(batch.samples):
            targets = batch.targets[row]
            ids = batch.ids[row].where(targets == Batch.IGNORE, targets).tolist()
            for places in words_of(tokenizer, ids):
                ordinary = [at for at in places if ids[at] not in tokenizer.special]
                hidden = [bool(targets[at] != Batch.IGNORE) for at in ordinary]
                assert all(hidden) or not any(hidden)
                longer += len(hidden) > 1 and any(hidden)
                chosen, total = chosen + sum(hidden), total + len(hidden)
    assert longer > 100
    assert abs(chosen / total - CHOSEN_SHARE) < 0.01


def test_a_sequence_of_which_nothing_was_drawn_loses_one_whole_word(tokenizer: Tokenizer):
    ids = torch.tensor([tokenizer.encode("twelve")])
    assert ids.shape[1] > 1
    for seed in range(20):
        batch = mask(ids, tokenizer, torch.Generator().manual_seed(seed), whole_words=True)
        assert batch.tokens == ids.shape[1]


def test_a_tokenizer_that_does_not_tell_words_apart_is_refused_in_words(tmp_path: Path):
    from tokenizers import Tokenizer as Encoder
    from tokenizers.models import WordLevel

    names = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
    encoder = Encoder(WordLevel({name: at for at, name in enumerate(names)}, unk_token="<unk>"))
    encoder.save(str(tmp_path / "plain.json"))
    plain = Tokenizer(tmp_path / "plain.json", 10)
    with pytest.raises(TokenizerError, match="do not tell where words begin"):
        mask(torch.tensor([[5, 6]]), plain, torch.Generator(), whole_words=True)


def test_both_segments_are_the_documents_and_half_of_them_change_places(tokenizer: Tokenizer):
    generator = torch.Generator().manual_seed(0)
    pairs = list(pair_up(COUNTING * 100, tokenizer, 1000, generator))
    assert len(pairs) == 900
    start, end = tokenizer.start, tokenizer.end
    cuts = set()
    for pair, document in zip(pairs, COUNTING * 100, strict=True):
        one, two = pair.ids[1 : pair.first - 1], pair.ids[pair.first : -1]
        assert pair.ids == [start, *one, end, *two, end]
        sentences = [
            tokenizer.encode(f"{part}.") for part in document.removesuffix(".").split(". ")
        ]
        assert (two + one if pair.is_swapped else one + two) == joined(sentences)
        first = two if pair.is_swapped else one
        cuts.add(len(first))
        assert first in (joined(sentences[:count]) for count in (1, 2, 3))
    assert 0.45 < sum(pair.is_swapped for pair in pairs) / 900 < 0.55
    assert len(cuts) > 3


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ('He said "no." Then he left.', 2),
        ("আমি যাই। তুমি থাকো॥ সে আসে", 3),
        ("これは本です。それはペンです。", 2),
        ("version 2.0 of it", 1),
    ],
)
def test_sentences_end_where_their_script_says(tokenizer: Tokenizer, text: str, count: int):
    assert len([part for part in ENDS.split(text) if tokenizer.encode(part)]) == count


def test_long_documents_become_several_pairs_and_a_single_token_none(tokenizer: Tokenizer):
    generator = torch.Generator().manual_seed(0)
    document = "Now comes one of them. " * 50 + "x" * 300
    pairs = list(pair_up([document], tokenizer, 40, generator))
    tokens = [token for pair in pairs for token in pair.ids if token not in tokenizer.special]
    parts = ["Now comes one of them."] * 50 + ["x" * 300]
    whole = joined(tokenizer.encode(part) for part in parts)
    assert sorted(tokens) == sorted(whole)
    assert max(len(pair.ids) for pair in pairs) <= 43
    token = next(text for text in "abcdefg" if len(tokenizer.encode(text)) == 1)
    assert list(pair_up([token], tokenizer, 40, generator)) == []


def test_albert_large_with_sentence_order_has_the_known_number_of_parameters():
    params = Params(
        hidden=1024, layers=24, heads=16, embedding=128, length=512, sentence_order=True
    )
    assert Albert(params).parameter_count(32_000) == 18_105_474


def test_a_model_learns_the_order_and_the_words(tokenizer: Tokenizer):
    sizes = {**SHAPES["albert"], "sentence_order": True, "length": 64}
    recipe = make_recipe(
        optimizer=Optimizer(learning_rate=1e-2, warmup_rounds=0, schedule="constant"),
        sequence_length=48,
    )
    words = Vocabulary(file=recipe.tokenizer.file, vocab_size=300)
    family = Choice(name="albert", params=sizes)
    recipe = recipe.model_copy(update={"family": family, "tokenizer": words})
    learner = Learner(recipe, tokenizer.pad)
    real = sum(p.numel() for p in learner.model.parameters())
    assert real == learner.family.parameter_count(300)
    assert learner.family.objective == PAIRS
    stream = batches(TALE * 4000, tokenizer, PAIRS, length=48, size=lambda: 16, seed=0)
    for batch in islice(stream, 200):
        learner.learn(batch)
        learner.accept(learner.offer().tensors, [])
    batch = next(stream)
    learner.model.eval()
    with torch.no_grad():
        pooled = learner.model.albert(
            batch.ids, attention_mask=batch.attention, token_type_ids=batch.segments
        ).pooler_output
        told = learner.model.sop_classifier(pooled).argmax(1)
    assert float((told == batch.swapped).float().mean()) > 0.9


def test_what_processes_and_passes_share_of_a_batch_of_pairs_is_whole(tokenizer: Tokenizer):
    stream = batches(COUNTING * 9, tokenizer, PAIRS, length=64, size=lambda: 7, seed=0)
    batch = next(stream)
    for parts in (list(batch.parts(3)), [batch.share(rank, 2) for rank in range(2)]):
        assert sum(part.samples for part in parts) == 7
        for part in parts:
            assert part.segments.shape == part.ids.shape and len(part.swapped) == part.samples
            assert (part.segments[part.attention == 0] == 0).all()
