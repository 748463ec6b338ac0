"""The loss of models that read a text with gaps and write what was in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from trainer.families.base import Batch


def loss_sum(model: Any, batch: Batch) -> Tensor:
    """The decoder sees what it has to write, one place late."""
    from torch.nn.functional import cross_entropy

    logits = model(
        input_ids=batch.ids,
        attention_mask=batch.attention,
        decoder_input_ids=model.prepare_decoder_input_ids_from_labels(labels=batch.targets),
        use_cache=False,
    ).logits
    chosen = batch.targets != batch.IGNORE
    return cross_entropy(logits[chosen].float(), batch.targets[chosen], reduction="sum")
