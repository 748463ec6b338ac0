"""Makes a tokenizer.json out of texts: normal form, words, pieces, special tokens."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.text.corpus import Corpus, Seen
from trainer.text.normal_form import normal_form
from trainer.text.roles import LAYOUTS, Layout, frame
from trainer.text.tokenizer import Tokenizer, TokenizerError
from trainer.text.unigram import Told, learn, silent
from trainer.text.words import Words, words_of
from trainer.tokenizing import Wanted

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Encoder

TOLD_EVERY = 5_000  # documents
MEASURED = 1_000  # pieces of the corpus that the finished tokenizer is measured on
WORD_START = "▁"
READING = 0.6  # of the work, where there is much text


@dataclass(frozen=True)
class Made:
    """`size` may be lower than what was wanted. The last two were measured on the first texts."""

    size: int
    seen: Seen
    num_words: int
    characters_per_token: float
    unknown_share: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def make(corpus: Corpus, wanted: Wanted, path: Path, told: Told = silent) -> Made:
    """The same texts and wishes give the same bytes. Raises TokenizerError and OSError."""
    layout = LAYOUTS[wanted.purpose]
    num_pieces = wanted.size - len(layout.tokens)
    encoder = _bare(wanted)
    words, samples = _counted(corpus, encoder, told)
    chosen, letters = words.chosen(num_pieces // 2)

    def told_of_rest(what: str, share: float) -> None:
        told(what, READING + (1 - READING) * share)

    learned = learn(chosen, letters, num_pieces, told_of_rest)
    pieces = [(piece, round(score, 6)) for piece, score in learned]
    _fill(encoder, sorted(pieces, key=lambda piece: (-piece[1], piece[0])), layout)
    _write(encoder, path)
    size = encoder.get_vocab_size()
    Tokenizer(path, size)  # it loads, and knows what to do with unknown characters
    encoded = [encoder.encode(sample, add_special_tokens=False).ids for sample in samples]
    num_ids = max(1, sum(map(len, encoded)))
    unknown = layout.first.index(layout.special.unknown)
    return Made(
        size=size,
        seen=corpus.seen,
        num_words=len(words.counts),
        characters_per_token=sum(map(len, samples)) / num_ids,
        unknown_share=sum(ids.count(unknown) for ids in encoded) / num_ids,
    )


def _write(encoder: Encoder, path: Path) -> None:
    """Complete, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text(encoder.to_str(pretty=True), encoding="utf-8")
    new.replace(path)


def _bare(wanted: Wanted) -> Encoder:
    """One that normalises and splits, and knows no piece yet."""
    from tokenizers import Tokenizer as Encoder
    from tokenizers import decoders, models, pre_tokenizers

    encoder = Encoder(models.Unigram())
    encoder.normalizer = normal_form(wanted.without)
    # Word starts are marked first: punctuation and digits must not look like words of their own.
    encoder.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="always"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Punctuation("isolated"),
        ]
    )
    encoder.decoder = decoders.Metaspace(replacement=WORD_START, prepend_scheme="always")
    return encoder


def _counted(corpus: Corpus, encoder: Encoder, told: Told) -> tuple[Words, list[str]]:
    """Its words, and its first pieces."""
    words, told_at = Words(), TOLD_EVERY
    samples: list[str] = []
    for piece in corpus:
        words.add(words_of(piece, encoder))
        if len(samples) < MEASURED:
            samples.append(piece)
        if corpus.seen.documents >= told_at:
            told_at += TOLD_EVERY
            told(f"read {corpus.seen.documents:,} documents", READING * corpus.share_read)
    _check(corpus, words)
    return words, samples


def _check(corpus: Corpus, words: Words) -> None:
    """Raises TokenizerError where there is nothing to learn from, or most of it is no text."""
    seen = corpus.seen
    files = f"{len(corpus.files)} file{'' if len(corpus.files) == 1 else 's'}"
    why = [f"{path}: {reason}" for path, reason in seen.left_out.items()]
    if seen.first_broken:
        why.append(f"{seen.broken:,} lines cannot be read, the first one is {seen.first_broken}")
    if not words.counts:
        raise TokenizerError("; ".join([f"there is no text in {files}", *why]))
    if seen.broken > seen.documents:
        raise TokenizerError("; ".join([f"most of the {files} is no text", *why]))


def _fill(encoder: Encoder, pieces: list[tuple[str, float]], layout: Layout) -> None:
    from tokenizers import models

    first, last = ([(token, 0.0) for token in part] for part in (layout.first, layout.last))
    unknown = layout.first.index(layout.special.unknown)
    encoder.model = models.Unigram([*first, *pieces, *last], unknown, False)
    frame(encoder, layout)
