"""Numbers as people read them."""

from __future__ import annotations

UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
DAY_H, YEAR_D = 24, 365


def size(num_bytes: float) -> str:
    """`1.43 GB`: three figures, decimal units."""
    for factor, unit in UNITS:
        if num_bytes >= factor:
            return f"{_three(num_bytes / factor)} {unit}"
    return f"{num_bytes:.0f} B"


def count(number: float) -> str:
    """`17,053,824` below 10^9, and `7e9` from there."""
    return f"{number:,.0f}" if number < 1e9 else f"{_three(number / 1e9)}e9"


def duration(hours: float) -> str:
    """In the largest unit of which there are two or more."""
    if hours < 1 / 30:
        return f"{_three(hours * 3600)} s"
    if hours < 2:
        return f"{hours * 60:.0f} minutes"
    if hours < 2 * DAY_H:
        return f"{_three(hours)} hours"
    days = hours / DAY_H
    return f"{_three(days)} days" if days < 2 * YEAR_D else f"{_three(days / YEAR_D)} years"


def _three(number: float) -> str:
    digits = 2 if number < 10 else 1 if number < 100 else 0
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text
