"""All ways to write words with pieces, and sums over them, a column of all words at a time.

A node is a place in a word: before its first character, between two, or after its last. An edge is
a piece from one node to a later one. Nodes are numbered column by column and words are sorted by
length, longest first, so that a column is one slice and so are the edges that end in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

LONGEST_PIECE = 16  # characters
Array = np.ndarray[Any, Any]


class Columns:
    """Words as columns of characters, each a number in the `alphabet`; none may be missing there.

    `words` must be sorted by length, longest first. Of each node: the `word` it is in, its
    `column`, how many characters follow it there (`room`), and the `code` of the next one.
    """

    def __init__(self, words: Sequence[str], alphabet: Sequence[str]) -> None:
        lengths = np.array([len(word) for word in words], dtype=np.int32)
        longest = int(lengths.max(initial=0))
        # How many words have a node in each column; a word of 3 characters has 4 nodes.
        sizes = np.searchsorted(-lengths, -np.arange(longest + 1), side="right")
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.column = np.repeat(np.arange(longest + 1, dtype=np.int32), sizes)
        self.word = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
        self.room = lengths[self.word] - self.column
        self.end = self.first[lengths] + np.arange(len(words))
        self.width = len(alphabet)
        known = _points("".join(sorted(alphabet)))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.searchsorted(known, _points("".join(words)))
        self.code = np.zeros(len(self.word), dtype=np.int32)
        inside = self.room > 0
        self.code[inside] = flat[starts[self.word[inside]] + self.column[inside]]

    def __len__(self) -> int:
        return len(self.word)

    def after(self, nodes: Array, steps: int) -> Array:
        """The nodes so many characters further on in the same words."""
        return self.first[self.column[nodes] + steps] + self.word[nodes]


def _points(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


class _Trie:
    """The pieces, character by character. `keys` are state x width + code, sorted; the state that a
    key leads to is its place, plus one."""

    def __init__(self, pieces: Columns) -> None:
        state = np.zeros(len(pieces.end), dtype=np.int64)
        levels: list[Array] = []
        num_states = 1
        for start, stop in pairwise(pieces.first):
            nodes = np.arange(start, stop)
            nodes = nodes[pieces.room[nodes] > 0]
            word = pieces.word[nodes]
            keys, inverse = np.unique(
                state[word] * pieces.width + pieces.code[nodes], return_inverse=True
            )
            state[word] = num_states + inverse
            levels.append(keys)
            num_states += len(keys)
        self.keys = np.concatenate(levels)
        self.piece_at = np.full(num_states, -1, dtype=np.int32)
        self.piece_at[state] = np.arange(len(state))


class _Level(NamedTuple):
    """The edges that end in one column, and where in them each of its nodes begins."""

    edges: slice
    starts: Array
    nodes: slice


class Lattice:
    """The edges of `words` under `pieces`. Every character of a word must be a piece."""

    def __init__(self, words: Sequence[str], pieces: Sequence[str], *, whole: bool = True) -> None:
        """`words` sorted by length, longest first. `whole`: a word may be one piece."""
        alphabet = [piece for piece in pieces if len(piece) == 1]
        order = sorted(range(len(pieces)), key=lambda number: -len(pieces[number]))
        trie = _Trie(Columns([pieces[number] for number in order], alphabet))
        self._columns = Columns(words, alphabet)
        source, target, piece = self._find(trie)
        if not whole:
            columns = self._columns
            inner = ~((columns.column[source] == 0) & (columns.room[target] == 0))
            source, target, piece = source[inner], target[inner], piece[inner]
        by_target = np.argsort(target, kind="stable")  # merges sorted runs
        self._source, self._target = source[by_target], target[by_target]
        self._piece = np.array(order, dtype=np.int32)[piece[by_target]]
        self._set_levels()

    def _find(self, trie: _Trie) -> tuple[Array, Array, Array]:
        columns = self._columns
        start = np.flatnonzero(columns.room > 0).astype(np.int32)
        here, state = start, np.zeros(len(start), dtype=np.int64)
        found: list[tuple[Array, Array, Array]] = []
        for length in range(1, LONGEST_PIECE + 1):
            key = state * columns.width + columns.code[here]
            place = np.minimum(np.searchsorted(trie.keys, key), len(trie.keys) - 1)
            known = trie.keys[place] == key
            start, state = start[known], place[known] + 1
            target = columns.after(start, length).astype(np.int32)
            piece = trie.piece_at[state]
            is_piece = piece >= 0
            found.append((start[is_piece], target[is_piece], piece[is_piece]))
            more = columns.room[target] > 0
            start, here, state = start[more], target[more], state[more]
        source, targets, pieces = (np.concatenate(part) for part in zip(*found, strict=True))
        return source, targets, pieces

    def _set_levels(self) -> None:
        first = self._columns.first
        begins = np.searchsorted(self._target, np.arange(len(self._columns) + 1))
        self._levels = [
            _Level(slice(begins[a], begins[b]), begins[a:b] - begins[a], slice(a, b))
            for a, b in pairwise(first[1:])
            if begins[b] > begins[a]
        ]

    def keep(self, kept: Array) -> None:
        """Only edges of these pieces, which are numbered anew. All single characters must stay."""
        inside = kept[self._piece]
        number = np.cumsum(kept, dtype=np.int32) - 1
        self._source, self._target = self._source[inside], self._target[inside]
        self._piece = number[self._piece[inside]]
        self._set_levels()

    def _forward(self, scores: Array, join: np.ufunc) -> Array:
        """Of each node: all ways to it, joined; a way's score is the sum of its pieces'."""
        reached = np.zeros(len(self._columns))
        for edges, starts, nodes in self._levels:
            ways = reached[self._source[edges]] + scores[self._piece[edges]]
            reached[nodes] = join.reduceat(ways, starts)
        return reached

    def best(self, scores: Array) -> Array:
        """The highest score of each word."""
        return self._forward(scores, np.maximum)[self._columns.end]

    def expected(self, scores: Array, counts: Array) -> tuple[Array, float]:
        """How often each piece occurs in words seen `counts` times, over all ways by their
        probability; and the log likelihood of the words."""
        reached = self._forward(scores, np.logaddexp)
        mass = np.zeros(len(reached))
        mass[self._columns.end] = counts
        found = np.zeros(len(scores))
        for edges, _, _ in reversed(self._levels):
            source, target, piece = (
                part[edges] for part in (self._source, self._target, self._piece)
            )
            share = np.exp(reached[source] + scores[piece] - reached[target]) * mass[target]
            np.add.at(mass, source, share)
            found += np.bincount(piece, share, minlength=len(scores))
        return found, float(counts @ reached[self._columns.end])
