"""Where in a text each piece of it comes from: for labels on words, and for people who look."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Encoding

INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp", "Co", "Cn")


def spans(text: str, encoding: Encoding) -> list[tuple[int, int]]:
    """Start and end in characters of `text`, in order; together they cover all that can be seen.

    The library's own offsets leave characters out where several become one: a vowel sign in two
    parts counts as its first. Here marks belong to the piece before them and other characters to
    the piece after. A mark of a word's start is empty, and so is a special token; two pieces out of
    one character, as of a ligature, have the same place.
    """
    found: list[tuple[int, int]] = []
    reached, last = 0, -1  # so far, and the newest piece with a place
    for number, (start, end) in enumerate(encoding.offsets):
        if encoding.special_tokens_mask[number]:
            found.append((reached, reached))
            continue
        marks, visible = _gap(text, reached, start, has_piece_before=last >= 0)
        if marks > reached:
            found[last] = (found[last][0], marks)
        start = min(start, visible)
        if encoding.tokens[number] == "▁":
            found.append((start, start))
            reached = max(reached, marks)
        else:
            start += _blanks(text, start, end)
            found.append((start, end))
            reached, last = max(reached, end), number
    marks, _ = _gap(text, reached, len(text), has_piece_before=last >= 0)
    if marks > reached:
        found[last] = (found[last][0], marks)
    return found


def _gap(text: str, start: int, end: int, *, has_piece_before: bool) -> tuple[int, int]:
    """Up to where marks go on, and from where on there is something to see; `end` for nowhere."""
    marks = start
    while has_piece_before and marks < end and unicodedata.category(text[marks]).startswith("M"):
        marks += 1
    return marks, marks + _blanks(text, marks, end)


def _blanks(text: str, start: int, end: int) -> int:
    """How many characters from `start` on cannot be seen."""
    count = 0
    while start + count < end and unicodedata.category(text[start + count]) in INVISIBLE:
        count += 1
    return count
