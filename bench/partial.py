"""How many of 500 rounds of healthy peers (a coordinator, two peers and one that only sends) end
partial: hivemind 1.1.12 then calls an average good of which some members lack a part."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from tests.swarm.averagers import Group, Result, mean_of

NUM_ROUNDS = 500
SHAPES = [(1000, 1000), (512,)]  # 8 parts of 512 KiB
TOKENS = [0, 300, 100, 200]
TOLERANCE = 1e-5


def as_wanted(results: list[Result], offers: list[list[torch.Tensor]]) -> bool:
    """Whether each member whose verdict is clean holds the weighted mean of all offers."""
    wanted = mean_of(offers, TOKENS)
    clean = [mean for verdict, mean in results if verdict.applies]
    return all(
        torch.allclose(a, b, atol=TOLERANCE)
        for mean in clean
        for a, b in zip(mean, wanted, strict=True)
    )


def main() -> dict[str, Any]:
    group = Group(SHAPES, coordinator=True)
    outcomes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    wrong = split = 0
    try:
        for sends_only in (False, False, False, True):
            group.add(sends_only=sends_only)
        for number in range(NUM_ROUNDS):
            torch.manual_seed(number)
            offers = [[torch.randn(shape) * 1e-2 for shape in SHAPES] for _ in TOKENS]
            offers[0] = [torch.zeros(shape) for shape in SHAPES]
            results = group.average(offers, TOKENS)
            outcomes.update(verdict.outcome.value for verdict, _ in results)
            reasons.update(v.reason for v, _ in results if not v.applies)
            wrong += not as_wanted(results, offers)
            split += len({verdict.applies for verdict, _ in results}) > 1
    finally:
        group.close()
    return {
        "value": wrong,
        "unit": f"of {NUM_ROUNDS} rounds in which a clean verdict stood over a wrong average",
        "goal": "0",
        "met": wrong == 0,
        "compared_with": {
            "verdicts_of_members": dict(outcomes),
            "why_not_clean": dict(reasons),
            "rounds_that_not_all_applied": split,
        },
    }
