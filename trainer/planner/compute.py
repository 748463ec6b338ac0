"""How many tokens a model should see, and how long volunteers take for them."""

from __future__ import annotations

from collections.abc import Mapping

# Tokens a parameter: Hoffmann et al. 2022 (Chinchilla: 70 B parameters, 1.4 T tokens); Kaplan et
# al. 2020, by which GPT-3 saw 300 B tokens with 175 B parameters.
TOKENS_PER_PARAMETER: Mapping[str, float] = {"chinchilla": 20.0, "kaplan": 300 / 175}
UTILISATION = 0.3  # of a device's peak, in training; measure it where that can be


def tokens_for(parameters: float, rule: str = "chinchilla") -> float:
    return TOKENS_PER_PARAMETER[rule] * parameters


def training_flops(parameters: float, tokens: float) -> float:
    """C = 6 N D (Kaplan et al. 2020, section 2.1). N counts a shared layer each time it is used."""
    return 6 * parameters * tokens


def hours(flops: float, flops_per_s: float, utilisation: float = UTILISATION) -> float:
    """Of devices whose peaks add up to `flops_per_s`. Raises ValueError when nobody computes."""
    if flops_per_s <= 0:
        raise ValueError("no device with a known speed: nobody would compute anything")
    if not 0 < utilisation <= 1:
        raise ValueError(f"a utilisation of {utilisation:g} makes no sense: it is between 0 and 1")
    return flops / (flops_per_s * utilisation) / 3600
