"""The lattice against all segmentations written out, and the pieces that are learned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.text import words as counting
from trainer.text.lattice import Lattice
from trainer.text.unigram import learn
from trainer.text.words import Words

PIECES = ["a", "b", "c", "ab", "bc", "abc", "cab", "aa"]
SCORES = np.array([-2.0, -2.5, -3.0, -1.5, -2.2, -1.0, -4.0, -3.3])
WORDS = st.lists(st.text("abc", min_size=1, max_size=7), min_size=1, max_size=6, unique=True)


def ways(word: str) -> Iterator[list[int]]:
    """All ways to write it with the pieces."""
    if not word:
        yield []
    for number, piece in enumerate(PIECES):
        if word.startswith(piece):
            for rest in ways(word[len(piece) :]):
                yield [number, *rest]


@settings(max_examples=100, deadline=None)
@given(WORDS)
def test_a_lattice_sums_over_all_segmentations(words):
    words = sorted(words, key=lambda word: -len(word))
    counts = np.arange(1.0, len(words) + 1)
    found, likelihood = Lattice(words, PIECES).expected(SCORES, counts)
    expected, total = np.zeros(len(PIECES)), 0.0
    for word, count in zip(words, counts, strict=True):
        scored = [(math.exp(SCORES[way].sum()), way) for way in ways(word)]
        mass = sum(probability for probability, _ in scored)
        total += count * math.log(mass)
        for probability, way in scored:
            np.add.at(expected, way, count * probability / mass)
    assert np.allclose(found, expected) and likelihood == pytest.approx(total)


@settings(max_examples=100, deadline=None)
@given(WORDS)
def test_a_lattice_finds_the_best_way_also_without_the_word_as_one_piece(words):
    words = sorted((word for word in words if len(word) > 1), key=lambda word: -len(word))
    if not words:
        return
    best = Lattice(words, PIECES).best(SCORES)
    parted = Lattice(words, PIECES, whole=False).best(SCORES)
    for word, whole, parts in zip(words, best, parted, strict=True):
        scores = {tuple(way): SCORES[way].sum() for way in ways(word)}
        assert whole == pytest.approx(max(scores.values()))
        assert parts == pytest.approx(max(s for way, s in scores.items() if len(way) > 1))


def test_pieces_that_are_dropped_leave_a_lattice_of_the_others():
    words, kept = ["abcab", "abc", "ba"], np.array([True] * 5 + [False, True, True])
    lattice, counts = Lattice(words, PIECES), np.array([1.0, 2.0, 3.0])
    lattice.keep(kept)
    left = [piece for piece, stays in zip(PIECES, kept, strict=True) if stays]
    fresh = Lattice(words, left).expected(SCORES[kept], counts)
    assert np.allclose(lattice.expected(SCORES[kept], counts)[0], fresh[0])


def test_what_occurs_together_becomes_a_piece():
    words = {"▁the": 900, "▁them": 300, "▁then": 300, "▁cat": 200, "▁cats": 200, "▁x": 2}
    learned = dict(learn(words, letters_of(words), 16))
    assert {"▁the", "▁cat"} <= set(learned) and set("▁themncatsx") <= set(learned)
    assert len(learned) <= 16 and all(score < 0 for score in learned.values())


def test_there_are_never_more_pieces_than_asked_for():
    words = {f"{a}{b}{c}": 3 for a in "abcd" for b in "efgh" for c in "ijkl"}
    for size in (12, 13, 20, 40, 1000):
        assert len(learn(words, letters_of(words), size)) <= size


def letters_of(words: dict[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, count in words.items():
        found.update({letter: count * word.count(letter) for letter in word})
    return found


def test_words_are_counted_in_bounded_memory_and_frequent_ones_exactly(monkeypatch):
    monkeypatch.setattr(counting, "MOST_COUNTED", 2_000)
    words, most = Words(), 0
    for number in range(20_000):
        words.add(["always", f"rare{number:06}"])
        most = max(most, sum(map(len, words.counts)))
    assert most <= 2_000 + len("rare000000")
    chosen, letters = words.chosen(100)
    assert chosen["always"] == words.counts["always"] == 20_000
    assert letters["y"] == 20_000 and letters["a"] == 60_000
    assert next(iter(chosen)) == "always"


def test_words_end_where_a_letter_too_many_is():
    words = Words()
    words.add(["abc"] * 5 + ["abzca", "z"])
    assert words.chosen(3) == ({"abc": 5, "ab": 1, "ca": 1}, {"a": 7, "b": 6, "c": 6})
