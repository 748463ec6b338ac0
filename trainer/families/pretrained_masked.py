"""A trained model that guesses masked tokens from those around them (BERT and its like)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.families import base
from trainer.families._pretrained import Pretrained

if TYPE_CHECKING:
    from torch import Tensor


class PretrainedMasked(Pretrained):
    label = "A trained model (masked words)"
    objective = base.MASKED
    auto = "AutoModelForMaskedLM"

    def loss_sum(self, model: Any, batch: base.Batch) -> Tensor:
        from torch.nn.functional import cross_entropy

        logits = model(input_ids=batch.ids, attention_mask=batch.attention).logits
        chosen = batch.targets != batch.IGNORE
        return cross_entropy(logits[chosen].float(), batch.targets[chosen], reduction="sum")


PLUGIN = PretrainedMasked
