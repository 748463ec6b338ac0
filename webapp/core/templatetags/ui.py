"""Figures for people: at most three significant digits (scores: two decimals), a unit, and how long
ago.

`static/js/figures.js` is the twin of this file; both are tested on tests/web/figures.json.
"""

from __future__ import annotations

import math
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import TypeGuard, TypeVar

from django import template
from django.utils import timezone

from webapp.core.phrases import PHRASES
from webapp.core.text import hidden_signs

register = template.Library()
register.filter(hidden_signs)

Number = TypeVar("Number", bound=float | Decimal)

DIGITS = 3
IN_FULL_BELOW = 100_000  # whole numbers under this are written out
PREFIXES = ["", "k", "M", "G", "T", "P"]
SPANS = [("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)]


def say(phrase: str, **parts: object) -> str:
    return str(PHRASES[phrase]).format(**parts)


@register.filter
def number(value: float | Decimal | None) -> str:
    """`14,208`, `2.31`, `204 k`, `1.5e-9`; a dash for what is no number."""
    if not _is_number(value):
        return say("nothing")
    if float(value).is_integer() and abs(float(value)) < IN_FULL_BELOW:
        return f"{int(value):,}"
    return _scaled(float(value), "{n} {prefix}")


@register.filter
def score(value: float | None) -> str:
    """As papers write it, with two decimals: `95.45`, `0.50`; from 1,000 up as other numbers."""
    if not _is_number(value) or abs(float(value)) >= 1000:
        return number(value)
    return f"{value:.2f}"


def _scaled(value: float, form: str, *, whole: bool = False) -> str:
    """`value` with an SI prefix from 100,000 up (`whole`: from 1,000 up)."""
    size = _rounded(abs(value))
    power = 0
    if size >= (1000 if whole else IN_FULL_BELOW):
        power = min((size.adjusted()) // 3, len(PREFIXES) - 1)
    digits = _digits(_rounded(abs(value)) / (Decimal(1000) ** power))
    sign = "-" if value < 0 and digits != "0" else ""
    return form.format(n=sign + digits, prefix=PREFIXES[power]).strip()


def _rounded(value: float | Decimal) -> Decimal:
    """To three significant digits, ties away from zero as JavaScript's toPrecision does it."""
    exact = Decimal(value)
    if not exact:
        return Decimal(0)
    return exact.quantize(Decimal(1).scaleb(exact.adjusted() - DIGITS + 1), ROUND_HALF_UP)


def _digits(value: Decimal) -> str:
    if not value:
        return "0"
    if value < Decimal("0.001"):
        coefficient, exponent = f"{value:.2e}".split("e")
        return f"{coefficient.rstrip('0').rstrip('.')}e{int(exponent)}"
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@register.filter(name="bytes")
def byte_size(value: float | None) -> str:
    """`512 B`, `1.5 kB`, `81.2 MB`: powers of 1000."""
    if not _is_number(value):
        return say("nothing")
    return _scaled(float(value), "{n} {prefix}B", whole=True)


@register.filter
def duration(seconds: float | None) -> str:
    """`0.4 s`, `42 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`: the two largest units."""
    if not _is_number(seconds):
        return say("nothing")
    if seconds < 1:
        return say(
            "second",
            n=_digits((Decimal(max(seconds, 0)) * 10).quantize(Decimal(1), ROUND_HALF_UP) / 10),
        )
    left = int(Decimal(seconds).quantize(Decimal(1), ROUND_HALF_UP))
    for place, (name, length) in enumerate(SPANS):
        if left >= length:
            count, rest = divmod(left, length)
            words = [say(name, n=f"{count:,}")]
            if place + 1 < len(SPANS):
                smaller, smaller_length = SPANS[place + 1]
                if rest >= smaller_length:
                    words.append(say(smaller, n=rest // smaller_length))
            return " ".join(words)
    return say("second", n=0)


@register.filter
def ago(moment: datetime | float | None) -> str:
    """`just now`, `12 s ago`, `3 min ago`, `5 d ago`, of a datetime or seconds since the epoch."""
    if moment is None:
        return say("nothing")
    then = moment.timestamp() if isinstance(moment, datetime) else float(moment)
    return since(timezone.now().timestamp() - then)


def since(seconds: float) -> str:
    """The largest unit only; under two seconds, and in the future, it is `just now`."""
    if seconds < 2:
        return say("now")
    name, length = next(span for span in SPANS if seconds >= span[1])
    return say("ago", span=say(name, n=f"{int(seconds // length):,}"))


@register.filter
def rate(per_s: float | None) -> str:
    """`103 /s`, `0.4 /s`, and per minute where less than one comes in ten seconds: `3 /min`."""
    if not _is_number(per_s):
        return say("nothing")
    if 0 < per_s < 0.1:
        return say("per_min", n=_tenth(per_s * 60))
    return say("per_s", n=number(_rounded(per_s)))


def _tenth(value: float) -> str:
    return _digits((Decimal(value) * 10).quantize(Decimal(1), ROUND_HALF_UP) / 10)


@register.filter
def percent(part: float | None, whole: float = 1) -> str:
    """`68 %`, `1.4 %` under ten; a dash when there is no whole."""
    if not _is_number(part) or not whole:
        return say("nothing")
    share = 100 * part / whole
    if abs(share) < 10:
        return say("percent", n=_tenth(share))
    return say("percent", n=f"{Decimal(share).quantize(Decimal(1), ROUND_HALF_UP):,}")


def _is_number(value: Number | None) -> TypeGuard[Number]:
    return isinstance(value, int | float | Decimal) and math.isfinite(value)
