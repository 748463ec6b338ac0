"""What the processes of a group split among them; each other file is one way to do so.

ZeRO (Rajbhandari et al. 2020, section 5): the optimizer's state (stage 1), the gradient as well
(stage 2), and the parameters as well (stage 3).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from trainer import recipe
from trainer.engine.arithmetic import Arithmetic
from trainer.engine.sharding.base import Shard

# Loaded where it is used: torch's libraries for it take a second and a half.
WAYS = {
    "optimizer": ("zero1", "Moments"),
    "gradients": ("fsdp", "Gradients"),
    "parameters": ("fsdp", "Parameters"),
    "offload": ("fsdp", "Offloaded"),
}


def way(split: str) -> type[Shard]:
    """`split` is one of WAYS."""
    module, name = WAYS[split]
    found: type[Shard] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def make_shard(
    split: str, family: Any, model: Any, options: recipe.Optimizer, arithmetic: Arithmetic
) -> Shard:
    """This process's share of `model`, which all build alike."""
    return way(split)(family, model, options, arithmetic)
