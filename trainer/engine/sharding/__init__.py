"""What the processes of a group split among them; each other file is one way to do so.

ZeRO (Rajbhandari et al. 2020, section 5): the optimizer's state (stage 1), the gradient as well
(stage 2), and the parameters as well (stage 3).
"""

from __future__ import annotations

from typing import Any

from trainer import recipe
from trainer.engine.arithmetic import Arithmetic
from trainer.engine.sharding.base import Shard
from trainer.engine.sharding.fsdp import Gradients, Offloaded, Parameters
from trainer.engine.sharding.zero1 import Moments

WAYS: dict[str, type[Shard]] = {
    "optimizer": Moments,
    "gradients": Gradients,
    "parameters": Parameters,
    "offload": Offloaded,
}


def make_shard(
    split: str, family: Any, model: Any, options: recipe.Optimizer, arithmetic: Arithmetic
) -> Shard:
    """This process's share of `model`, which all build alike; `split` is one of WAYS."""
    return WAYS[split](family, model, options, arithmetic)
