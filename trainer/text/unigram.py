"""Learns the pieces of a Unigram tokenizer and their log probabilities from counted words.

The method is Kudo's (2018, arXiv:1804.10959): begin with many frequent substrings, fit their
probabilities by expectation-maximisation, drop those whose loss costs the likelihood least, and
again, until `size` are left. The `tokenizers` library has a trainer, too, but its result differs
from run to run, as it adds up words in an order drawn by chance (measured with 0.23.3); this one
gives the same pieces and the same scores for the same words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import compress

import numpy as np
from scipy.special import digamma

from trainer.text.lattice import LONGEST_PIECE, Array, Columns, Lattice

SEEDS = 10  # times the size wanted
SHRINK = 0.75  # what a round of dropping leaves
SURPLUS = 1.1  # times the size wanted: from there, the least probable go
ROUNDS_OF_EM = 2
FEWEST = 0.5  # expected occurrences, below which a piece is dropped
Told = Callable[[str, float], None]  # what is done now, and how much of all is, from 0 to 1


def silent(what: str, share: float) -> None:
    """Tells nobody."""


def learn(
    words: Mapping[str, int],
    letters: Mapping[str, int],
    size: int,
    told: Told = silent,
) -> list[tuple[str, float]]:
    """At most `size` pieces with their log probabilities; fewer, where the words have no more.

    `letters` are all characters of the words, and perhaps more, with how often they occur. All are
    pieces, so `size` must be at least their number. `told` hears now and then what is done.
    """
    ordered = sorted(words, key=lambda word: (-len(word), word))
    counts = np.array([words[word] for word in ordered], dtype=np.float64)
    told(f"looking for frequent parts of {len(ordered):,} words", 0.0)
    seeds = _frequent(ordered, counts, sorted(letters), SEEDS * size)
    pieces = [*letters, *seeds]
    weights = np.array([*letters.values(), *seeds.values()], dtype=np.float64)
    is_letter = np.arange(len(pieces)) < len(letters)
    scores = np.log(weights / weights.sum())
    lattice, first = Lattice(ordered, pieces), len(pieces)
    while True:
        told(f"{len(pieces):,} pieces, of which {size:,} may stay", _done(first, len(pieces), size))
        for _ in range(ROUNDS_OF_EM):
            found, _likelihood = lattice.expected(scores, counts)
            kept = is_letter | (found >= FEWEST)
            lattice.keep(kept)
            pieces = list(compress(pieces, kept))
            is_letter, found = is_letter[kept], found[kept]
            scores = _fitted(found)
        if len(pieces) <= max(size * SURPLUS, len(letters)):
            break
        num_left = max(int(len(pieces) * SHRINK), int(size * SURPLUS))
        kept = _dearest(found * _worth(pieces, is_letter, scores), is_letter, num_left)
        lattice.keep(kept)
        pieces = list(compress(pieces, kept))
        is_letter, scores = is_letter[kept], scores[kept]
    kept = _dearest(scores, is_letter, size)
    return list(zip(compress(pieces, kept), scores[kept].tolist(), strict=True))


def _done(first: int, now: int, last: int) -> float:
    """From 0 to 1: each round leaves the same share of the pieces."""
    return math.log(first / now) / math.log(first / last) if first > last else 0.0


def _fitted(found: Array) -> Array:
    """Log probabilities from expected counts; digamma keeps rare pieces small (as Kudo's code)."""
    found = np.maximum(found, FEWEST)
    fitted: Array = digamma(found) - digamma(found.sum())
    return fitted


def _worth(pieces: Sequence[str], is_letter: Array, scores: Array) -> Array:
    """By how much each piece beats the best way to write it with others; infinite for letters."""
    order = sorted(np.flatnonzero(~is_letter), key=lambda number: -len(pieces[number]))
    without = Lattice([pieces[number] for number in order], pieces, whole=False).best(scores)
    worth = np.full(len(pieces), np.inf)
    worth[order] = scores[order] - without
    return worth


def _dearest(value: Array, is_letter: Array, size: int) -> Array:
    """All letters, and of the others those of the highest value, so that `size` are left."""
    kept = is_letter.copy()
    others = np.flatnonzero(~is_letter)
    order = np.argsort(-value[others], kind="stable")
    kept[others[order[: max(0, size - int(is_letter.sum()))]]] = True
    return kept


def _frequent(
    words: Sequence[str], counts: Array, letters: Sequence[str], most: int
) -> dict[str, float]:
    """Substrings of 2 to 16 characters with how often they occur: those seen twice or more that
    cover the most characters. One that is always part of the same longer one is left out.
    """
    columns = Columns(words, letters)
    start = np.flatnonzero(columns.room > 0)
    _, place, string = np.unique(columns.code[start], return_index=True, return_inverse=True)
    place, weight = start[place], np.bincount(string, counts[columns.word[start]])
    found: list[tuple[Array, Array, Array]] = []  # where one is, how long it is, how often
    for length in range(2, LONGEST_PIECE + 2):
        string_at = np.full(len(columns), -1, dtype=np.int64)
        string_at[start] = np.where((weight >= 2)[string], string, -1)
        start = start[columns.room[start] >= length]
        start = start[(string_at[start] >= 0) & (string_at[columns.after(start, 1)] >= 0)]
        parts = string_at[start], string_at[columns.after(start, 1)]
        keys = parts[0] * columns.width + columns.code[columns.after(start, length - 1)]
        _, at, string = np.unique(keys, return_index=True, return_inverse=True)
        longer = np.bincount(string, counts[columns.word[start]], minlength=len(at))
        good = weight >= 2
        for part in parts:
            good[part[at][longer == weight[part[at]]]] = False
        if length > 2:
            found.append((place[good], np.full(int(good.sum()), length - 1), weight[good]))
        place, weight = start[at], longer
    return _covering(columns, words, found, most)


def _covering(
    columns: Columns, words: Sequence[str], found: list[tuple[Array, Array, Array]], most: int
) -> dict[str, float]:
    places, lengths, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(-(lengths * weights), kind="stable")[:most]
    seeds = {}
    for number in order:
        word, column = words[columns.word[places[number]]], columns.column[places[number]]
        seeds[word[column : column + lengths[number]]] = float(weights[number])
    return seeds
