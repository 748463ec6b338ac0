"""Long texts cut where a reader sees two characters: no conjunct, mark or emoji is torn."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

VIRAMA = 9  # canonical combining class of hasanta and its like: the next letter joins
JOINER, NON_JOINER = "\u200d", "\u200c"
FLAGS, SKINS = range(0x1F1E6, 0x1F200), range(0x1F3FB, 0x1F400)
TAGS = range(0xE0020, 0xE0080)
HANGUL_LEADS = range(0x1100, 0x1160), range(0xA960, 0xA97D)
HANGUL_PARTS = range(0x1160, 0x1200), range(0xD7B0, 0xD7FC)
FOLLOWS = "\u0e33\u0eb3\uff9e\uff9f"  # letters by category: Thai and Lao AM, kana's voice marks
LEADS = "\u0d4e\u1cf5\u1cf6\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011d46\U00011f02"
LEADS += "".join(map(chr, range(0x11A84, 0x11A8A)))  # letters that belong to the next one
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
        or after in (JOINER, NON_JOINER, *FOLLOWS)
        or before in (JOINER, NON_JOINER, *LEADS)
        or unicodedata.combining(before) == VIRAMA
        or (ord(before) in FLAGS and ord(after) in FLAGS)
        or any(ord(before) in kind for kind in HANGUL_LEADS)
        or any(ord(after) in kind for kind in (SKINS, TAGS, *HANGUL_PARTS))
    )
