"""A trained encoder and decoder (BART, T5): it reads a masked text and writes the whole one.

As BART's token masking (Lewis et al. 2020, section 2.2), but the loss counts the masked places
only: those are the target tokens, which everything here is weighted by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.families import base
from trainer.families._pretrained import Pretrained

if TYPE_CHECKING:
    from torch import Tensor


class PretrainedDenoising(Pretrained):
    label = "A trained encoder and decoder (masked words)"
    objective = base.MASKED
    task = "SEQ_2_SEQ_LM"
    auto = "AutoModelForSeq2SeqLM"

    def loss_sum(self, model: Any, batch: base.Batch) -> Tensor:
        """The decoder sees what it has to write, one place late."""
        from torch.nn.functional import cross_entropy

        chosen = batch.targets != batch.IGNORE
        whole = batch.targets.where(chosen, batch.ids)
        logits = model(
            input_ids=batch.ids,
            attention_mask=batch.attention,
            decoder_input_ids=model.prepare_decoder_input_ids_from_labels(labels=whole),
            use_cache=False,
        ).logits
        return cross_entropy(logits[chosen].float(), batch.targets[chosen], reduction="sum")


PLUGIN = PretrainedDenoising
