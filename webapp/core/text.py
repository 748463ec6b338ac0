"""People's text, made safe to show on one line."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"  # Bengali, Persian and emoji need these two
NAMES = {"\u200c": "ZWNJ", "\u200d": "ZWJ"}
# Of no width, though their categories are those of letters and marks (Unicode's
# Default_Ignorable_Code_Point): fillers, and selectors of a variant.
FILLERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def hidden_signs(text: str) -> str:
    """What of `text` nobody sees, by name: `ZWJ`, `U+200B`; blanks are such, too."""
    hidden = (
        letter
        for letter in text
        if letter.isspace() or unicodedata.category(letter) in INVISIBLE or FILLERS.match(letter)
    )
    return " ".join(NAMES.get(letter, f"U+{ord(letter):04X}") for letter in hidden)


def one_line(text: str, max_length: int) -> str:
    """`text` without control and direction characters, single blanks, cut to `max_length`."""
    seen = "".join(
        " " if letter.isspace() else letter
        for letter in text
        if letter in JOINERS or letter.isspace() or unicodedata.category(letter) not in INVISIBLE
    )
    return " ".join(seen.split())[:max_length].strip()
