"""A trained model that predicts each token from those before it (GPT-2, LLaMA and their like)."""

from __future__ import annotations

from trainer.families._pretrained import Pretrained
from trainer.families.base import CAUSAL
from trainer.families.causal import Causal


class PretrainedCausal(Pretrained):
    label = "A trained model (next word)"
    objective = CAUSAL
    task = "CAUSAL_LM"
    auto = "AutoModelForCausalLM"
    loss_sum = Causal.loss_sum


PLUGIN = PretrainedCausal
