"""A trained encoder and decoder (T5): it reads a text with gaps and writes what was in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.families import _spans, base
from trainer.families._pretrained import Pretrained

if TYPE_CHECKING:
    from torch import Tensor


class PretrainedSpans(Pretrained):
    label = "A trained encoder and decoder (missing spans)"
    objective = base.SPANS
    task = "SEQ_2_SEQ_LM"
    auto = "AutoModelForSeq2SeqLM"

    def scored(self, tokens: int, targets: int) -> int:
        return targets

    def loss_sum(self, model: Any, batch: base.Batch) -> Tensor:
        return _spans.loss_sum(model, batch)


PLUGIN = PretrainedSpans
