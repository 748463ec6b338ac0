"""People's text, made safe to show on one line."""

from __future__ import annotations

import unicodedata

INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"  # Bengali, Persian and emoji need these two


def one_line(text: str, max_length: int) -> str:
    """`text` without control and direction characters, single blanks, cut to `max_length`."""
    seen = "".join(
        " " if letter.isspace() else letter
        for letter in text
        if letter in JOINERS or letter.isspace() or unicodedata.category(letter) not in INVISIBLE
    )
    return " ".join(seen.split())[:max_length].strip()
