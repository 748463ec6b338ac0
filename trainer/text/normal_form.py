"""The one way each text is written before it is cut: named steps that can be left out one by one.

Every step is made of the `tokenizers` library's own normalizers, so that a tokenizer.json holds it
and needs nothing else to be used. Done twice, they change nothing any more, whichever are left out;
that is why they stand in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from trainer.tokenizing import STEPS, StepName

if TYPE_CHECKING:
    from tokenizers.normalizers import Normalizer

# Control characters and invisible ones that no script needs. ZWJ and ZWNJ (200C, 200D) are none
# of them: they tell conjuncts and half forms apart. `tokenizers`' own Nmt() makes both spaces.
INVISIBLE = (
    r"[\x{0000}-\x{0008}\x{000E}-\x{001F}\x{007F}-\x{0084}\x{0086}-\x{009F}\x{00AD}\x{061C}"
    r"\x{200E}\x{200F}\x{202A}-\x{202E}\x{2060}\x{2066}-\x{2069}\x{FEFF}]"
)
# Separators of all kinds, a place where words may be broken, the sign that stands for a word's
# start in pieces, and what stands for bytes that could not be read.
BLANK = r"[\x{0009}-\x{000D}\x{0085}\p{Z}\x{200B}\x{2581}\x{FFFD}]"
# Letters and vowel signs, nukta and candrabindu: what a visarga may follow. No digits: 10:30.
BEFORE_VISARGA = (
    r"(?<=[\x{0981}\x{0985}-\x{09B9}\x{09BC}\x{09BE}-\x{09CC}\x{09CE}\x{09D7}\x{09DC}-\x{09E3}"
    r"\x{09F0}\x{09F1}])"
)
AFTER_BENGALI = r"(?<=\p{Bengali}|\p{Bengali} )"
ACCENTS = r"(?<=[\p{Latin}\p{Greek}])[\x{0300}-\x{036F}\x{1AB0}-\x{1AFF}\x{1DC0}-\x{1DFF}]+"


Replace = Callable[[str, str], Any]  # a pattern, and what comes in its place
MADE: dict[StepName, Callable[[Any, Replace], list[Any]]] = {
    "clean": lambda library, replace: [replace(INVISIBLE, ""), replace(BLANK, " ")],
    "nfkc": lambda library, replace: [library.NFKC()],
    "spaces": lambda library, replace: [library.Strip(), replace(" {2,}", " ")],
    "nukta": lambda library, replace: [
        replace("\u09dc", "\u09a1\u09bc"),
        replace("\u09dd", "\u09a2\u09bc"),
        replace("\u09df", "\u09af\u09bc"),
    ],
    "vowels": lambda library, replace: [
        replace("\u09c7\u09be", "\u09cb"),
        replace("\u09c7\u09d7", "\u09cc"),
    ],
    "visarga": lambda library, replace: [replace(f"{BEFORE_VISARGA}:", "\u0983")],
    "danda": lambda library, replace: [
        replace(r"[\x{09E4}\x{09F7}]", "\u0964"),  # 09E4, 09E5: reserved, and in use
        replace(r"\x{09E5}", "\u0965"),
        replace(rf"{AFTER_BENGALI}\|\|", "\u0965"),
        replace(rf"{AFTER_BENGALI}\|", "\u0964"),
        replace("\u0964\u0964", "\u0965"),
    ],
    "accents": lambda library, replace: [library.NFD(), replace(ACCENTS, ""), library.NFC()],
}


def normal_form(without: Collection[StepName] = ()) -> Normalizer:
    """All steps of `tokenizing.STEPS` but those named in `without`."""
    from tokenizers import Regex, normalizers

    def replace(pattern: str, content: str) -> Any:
        return normalizers.Replace(Regex(pattern), content)

    done = [MADE[name](normalizers, replace) for name in STEPS if name not in without]
    return normalizers.Sequence([normalizer for step in done for normalizer in step])
