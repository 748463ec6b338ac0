"""Less memory for more time: a pass keeps what goes into each layer, and computes the rest again.

Chen et al. 2016, "Training deep nets with sublinear memory cost"; about a third more arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from torch.nn import Module
from torch.utils.checkpoint import checkpoint

IN_WORDS = "memory is short: part of each pass is computed again, which takes longer"


def recompute(layers: Iterable[Module]) -> None:
    """The gradient is the same: dropout draws what it drew before."""
    for layer in layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
