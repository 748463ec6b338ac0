"""The tokenizer: one `tokenizer.json`, trained once by the site and loaded by every peer."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from trainer.parts import Special
from trainer.recipe import Recipe
from trainer.text.roles import special_of

OURS = Special()
STRANGE = "\U0010fffd"  # a character that no text has
SPECIAL = (OURS.pad, OURS.unknown, OURS.start, OURS.end, OURS.mask)
# How tokens tell that a word begins with them: True where they have this sign, or lack it.
WORD_SIGNS = {"▁": True, "Ġ": True, "##": False}


class TokenizerError(ValueError):
    """The tokenizer file, or the text to train one from, cannot be used; says why."""


def train_tokenizer(texts: Iterable[str], path: Path, vocab_size: int) -> int:
    """Trains a byte-level BPE tokenizer from `texts` and writes it to `path`.

    The same texts in the same order give the same file. Returns the number of tokens it has,
    which is lower than `vocab_size` when the texts are too few to fill it. Raises TokenizerError
    when there is no text, or when `vocab_size` cannot hold the alphabet.
    """
    from tokenizers import Tokenizer as Encoder
    from tokenizers import decoders, models, pre_tokenizers, trainers

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if vocab_size < len(alphabet) + len(SPECIAL):
        raise TokenizerError(
            f"vocab_size {vocab_size} is too small: {len(alphabet)} bytes and {len(SPECIAL)} "
            "special tokens must fit"
        )
    lines = [text for text in texts if text.strip()]
    if not lines:
        raise TokenizerError("there is no text to train a tokenizer from")
    encoder = Encoder(models.BPE(unk_token=OURS.unknown))
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    encoder.decoder = decoders.ByteLevel()
    encoder.train_from_iterator(
        lines,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(SPECIAL),
            initial_alphabet=sorted(alphabet),
            show_progress=False,
        ),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    encoder.save(str(path))
    return encoder.get_vocab_size()


class Tokenizer:
    """Token ids of a text, and those of special tokens; `start` is None where there is none.

    A model may have rows for more tokens than there are: `vocab_size` of them, for `num_tokens`.
    """

    def __init__(self, path: Path, vocab_size: int, special: Special | None = None) -> None:
        """`special`: by default what the file itself says.

        Raises TokenizerError when the file is broken or does not fit the recipe.
        """
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # this process forks
        from tokenizers import Tokenizer as Encoder

        try:
            self._encoder: Any = Encoder.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise TokenizerError(f"{path.name} is not a tokenizer: {error}") from error
        self.vocab_size, self.num_tokens = vocab_size, self._encoder.get_vocab_size()
        if self.num_tokens > vocab_size:
            raise TokenizerError(
                f"{path.name} has {self.num_tokens} tokens, the recipe says {vocab_size}"
            )
        special = special or special_of(self._encoder)
        ids = {role: self._id_of(name) for role, name in special.model_dump().items() if name}
        self.pad, self.end = ids["pad"], ids["end"]
        self.start, self._mask = ids.get("start"), ids.get("mask")
        self.special = frozenset(ids.values())
        try:
            self._encoder.encode(STRANGE)
        except Exception as error:
            raise TokenizerError(
                f"{path.name} has no token for unknown characters: {error}. Make it anew"
            ) from error

    @classmethod
    def of(cls, recipe: Recipe, path: Path) -> Tokenizer:
        """The recipe's, with its base's special tokens. Raises TokenizerError."""
        special = recipe.base.special if recipe.base else None
        return cls(path, recipe.tokenizer.vocab_size, special)

    @property
    def mask(self) -> int:
        """Raises TokenizerError where there is none."""
        if self._mask is None:
            raise TokenizerError("the tokenizer has no mask token: a masked model needs one")
        return self._mask

    def sentinels(self, wanted: int) -> list[int]:
        """Ids of T5's `<extra_id_0>` and those after it. Raises TokenizerError where they end."""
        if wanted > len(self._sentinels):
            raise TokenizerError(
                f"the tokenizer has {len(self._sentinels)} sentinels (<extra_id_0> and on), and "
                f"{wanted} are needed: shorten the sequences, or choose a tokenizer made for T5"
            )
        return self._sentinels[:wanted]

    @property
    def has_sentinels(self) -> bool:
        return bool(self._sentinels)

    @cached_property
    def _sentinels(self) -> list[int]:
        ids = (self._encoder.token_to_id(f"<extra_id_{number}>") for number in count())
        return list(takewhile(lambda number: number is not None, ids))

    @cached_property
    def word_starts(self) -> list[bool]:
        """For each of `vocab_size` ids whether a word, or a special token, begins with it.

        Raises TokenizerError where the tokens do not tell.
        """
        tokens = [self._encoder.id_to_token(number) or "" for number in range(self.vocab_size)]
        for sign, begins in WORD_SIGNS.items():
            if any(token.startswith(sign) for token in tokens):
                special = self.special
                return [
                    number in special or token.startswith(sign) == begins
                    for number, token in enumerate(tokens)
                ]
        raise TokenizerError(
            "the tokenizer's tokens do not tell where words begin (▁, Ġ or ##), so whole words "
            "cannot be masked: choose another tokenizer, or set whole_words to no"
        )

    def _id_of(self, token: str) -> int:
        number = self._encoder.token_to_id(token)
        if number is None:
            raise TokenizerError(f"the tokenizer has no {token} token")
        return number

    def decode(self, ids: list[int]) -> str:
        """The text of these, special tokens and all."""
        return str(self._encoder.decode(ids, skip_special_tokens=False))

    def encode(self, text: str) -> list[int]:
        """Ids without special tokens around them."""
        return self.encode_all([text])[0]

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        """The same of many, which threads share out where TOKENIZERS_PARALLELISM lets them."""
        found = self._encoder.encode_batch(texts, add_special_tokens=False)
        return [one.ids for one in found]
