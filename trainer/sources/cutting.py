"""Long texts cut where a reader sees two characters: no conjunct, mark or emoji is torn."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

VIRAMA = 9  # canonical combining class of hasanta and its like: the next letter joins
JOINER, NON_JOINER = "\u200d", "\u200c"
FLAGS, SKINS = range(0x1F1E6, 0x1F200), range(0x1F3FB, 0x1F400)
TAGS, HANGUL_PARTS = range(0xE0020, 0xE0080), range(0x1160, 0x1200)
LOOKED_BACK = 200  # characters, for a border; where none is, the cut is in the middle of something


def cut(text: str, limit: int) -> Iterator[str]:
    """Parts of at most `limit` characters, after a space if there is one in the second half."""
    start = 0
    while len(text) - start > limit:
        end = start + limit
        space = text.rfind(" ", start + limit // 2, end)
        border = space + 1 if space >= 0 else _border(text, start, end)
        yield text[start:border]
        start = border
    yield text[start:]


def _border(text: str, start: int, end: int) -> int:
    for place in range(end, max(start, end - LOOKED_BACK), -1):
        if is_border(text, place):
            return place
    return end


def is_border(text: str, place: int) -> bool:
    """Whether a new character, as a reader sees it, begins at `place`."""
    before, after = text[place - 1], text[place]
    return not (
        unicodedata.category(after).startswith("M")
        or after in (JOINER, NON_JOINER)
        or before in (JOINER, NON_JOINER)
        or unicodedata.combining(before) == VIRAMA
        or (ord(before) in FLAGS and ord(after) in FLAGS)
        or any(ord(after) in kind for kind in (SKINS, TAGS, HANGUL_PARTS))
    )
