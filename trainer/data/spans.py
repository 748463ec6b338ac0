"""How much of a text span corruption hides (`data.corruption`), and how much text fits so."""

from __future__ import annotations

from functools import lru_cache

HIDDEN_SHARE = 0.15
SPAN_TOKENS = 3.0  # on average


def num_hidden(length: int) -> tuple[int, int]:
    """Of `length` tokens: how many are hidden, and in how many spans."""
    tokens = min(max(round(length * HIDDEN_SHARE), 1), length - 1)
    return tokens, min(max(round(tokens / SPAN_TOKENS), 1), length - tokens)


@lru_cache
def window(length: int) -> int:
    """The most tokens of which the input has at most `length`, the end token included."""
    tokens = length
    while _input_tokens(tokens + 1) <= length:
        tokens += 1
    while tokens > 2 and _input_tokens(tokens) > length:
        tokens -= 1
    return tokens


def _input_tokens(length: int) -> int:
    tokens, spans = num_hidden(length)
    return length - tokens + spans + 1
