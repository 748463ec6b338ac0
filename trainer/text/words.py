"""Counts the words of a corpus in bounded memory, the same for the same texts."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from trainer.sources.cutting import cut

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Encoder

LONGEST_WORD = 48  # characters; where there are no blanks, a word is a sentence
MOST_COUNTED = 12_000_000  # characters of different words
MOST_LEARNED = 3_000_000  # of those that pieces are learned from


class Words:
    """How often each word of what was added occurs: exactly, until there are too many.

    Then those seen once go, those seen twice the next time, and so on: what is left out is rare.
    `letters` counts each character of all of them.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.letters: Counter[str] = Counter()
        self._characters = 0
        self._least = 1

    def add(self, words: Iterable[str]) -> None:
        for word in words:
            if word not in self.counts:
                self._characters += len(word)
            self.counts[word] += 1
        while self._characters > MOST_COUNTED:
            self._drop()

    def _drop(self) -> None:
        rare = [word for word, count in self.counts.items() if count <= self._least]
        self._least += 1
        for word in rare:
            self._note_letters(word, self.counts.pop(word))
            self._characters -= len(word)

    def _note_letters(self, word: str, count: int) -> None:
        for letter in word:
            self.letters[letter] += count

    def chosen(self, num_letters: int) -> tuple[dict[str, int], dict[str, int]]:
        """Words to learn from, and the letters: so many at most, the most frequent ones.

        Words end where another letter is. The most frequent ones come first; which of the equally
        frequent is by chance, but always the same.
        """
        letters = Counter(self.letters)
        for word, count in self.counts.items():
            for letter in word:
                letters[letter] += count
        known = dict(sorted(letters.items(), key=lambda one: (-one[1], one[0]))[:num_letters])
        counts: Counter[str] = Counter()
        for word, count in self.counts.items():
            for part in _parts(word, known):
                counts[part] += count
        order = sorted(counts, key=lambda word: (-counts[word], zlib.crc32(word.encode())))
        words, left = {}, MOST_LEARNED
        for word in order:
            if left >= len(word):
                words[word] = counts[word]
                left -= len(word)
        return words, known


def _parts(word: str, known: Mapping[str, int]) -> list[str]:
    """What is between letters that are not known."""
    if all(letter in known for letter in word):
        return [word]
    return "".join(letter if letter in known else "\n" for letter in word).split()


def words_of(text: str, encoder: Encoder) -> list[str]:
    """As the encoder normalises and splits it; cut where they are very long."""
    normal = encoder.normalizer.normalize_str(text)
    found = encoder.pre_tokenizer.pre_tokenize_str(normal)
    return [part for word, _ in found for part in cut(word, LONGEST_WORD)]
