"""What an offer may weigh in an average, beside what it holds. Pure: all reckon alike."""

from __future__ import annotations

from collections.abc import Mapping

ROUNDING = 1e-12  # relative


def capped(weights: Mapping[str, float], most_share: float) -> dict[str, float]:
    """The same weights, but those above a level weigh as much as it: it is `most_share` of the sum
    of all of them then.

    With k weights above the level L and R the sum of the others, L = s (k L + R), so that
    L = s R / (1 - k s). Of fewer than 1 / s members all weigh as much as the lightest.
    """
    heaviest = sorted((weight for weight in weights.values() if weight > 0), reverse=True)
    if not heaviest:
        return dict(weights)
    share = max(most_share, 1 / len(heaviest))
    for above, weight in enumerate(heaviest):
        rest = sum(heaviest[above:])
        level = share * rest / (1 - above * share)
        if weight <= level * (1 + ROUNDING):
            break
    return {name: min(weight, level) if above else weight for name, weight in weights.items()}


def discount(rounds_late: int) -> float:
    """What is left of the weight of a change that was made so many rounds ago, 1 / sqrt(1 + s).

    FedBuff (Nguyen et al. 2022).
    """
    return float((1 + rounds_late) ** -0.5)
