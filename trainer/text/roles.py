"""Special tokens by what a tokenizer is for: their names, their ids, and where they are put."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from trainer.parts import Special
from trainer.tokenizing import Purpose

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Encoder

SENTINELS = 100  # as T5 has them


class Layout(NamedTuple):
    """`first` have the ids from 0 on, `last` the highest. `one`, `two`: what is put around a text
    or a pair of them, as the library's templates say it; "" for nothing."""

    special: Special
    first: tuple[str, ...]
    last: tuple[str, ...] = ()
    one: str = ""
    two: str = ""

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.first + self.last


LAYOUTS: dict[Purpose, Layout] = {
    "albert": Layout(
        Special(),
        ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
        one="[CLS] $A [SEP]",
        two="[CLS] $A [SEP] $B:1 [SEP]:1",
    ),
    # No start token around a text: documents are packed end to end, with an end token after each.
    "causal": Layout(Special(end="</s>", start="<s>", mask=""), ("<pad>", "<unk>", "<s>", "</s>")),
    # T5's: a hidden span is <extra_id_0>, the next one <extra_id_1>, counted down from the top.
    "encoder-decoder": Layout(
        Special(end="</s>", start="", mask="<extra_id_0>"),
        ("<pad>", "</s>", "<unk>"),
        tuple(f"<extra_id_{number}>" for number in reversed(range(SENTINELS))),
        one="$A </s>",
        two="$A </s> $B </s>",
    ),
}


def frame(encoder: Encoder, layout: Layout) -> None:
    """Makes the tokenizer know its special tokens and put them where they belong."""
    from tokenizers import AddedToken
    from tokenizers.processors import TemplateProcessing

    encoder.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False, lstrip=token == layout.special.mask)
            for token in layout.tokens
        ]
    )
    if layout.one:
        used = [token for token in layout.tokens if token in f"{layout.one} {layout.two}".split()]
        numbered: Any = [(token, encoder.token_to_id(token)) for token in used]
        used_in_pair = TemplateProcessing(
            single=layout.one, pair=layout.two, special_tokens=numbered
        )
        encoder.post_processor = used_in_pair


def special_of(encoder: Encoder) -> Special:
    """The special tokens of the first layout that has all of its own in this tokenizer; those of
    ALBERT where none does."""
    known = {token.content for token in encoder.get_added_tokens_decoder().values()}
    for layout in LAYOUTS.values():
        if {name for name in layout.special.model_dump().values() if name} <= known:
            return layout.special
    return Special()
