"""A causal model that reads the beginning of a text both ways, and writes the rest (prefix-LM).

Raffel et al. 2020 (T5), section 3.2.1 and figure 4, right; Dong et al. 2019 (UniLM), section 2.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.families import base
from trainer.families.llama import Llama

if TYPE_CHECKING:
    from torch import Tensor


class Prefix(Llama):
    label = "LLaMA with a prefix read both ways (prefix-LM)"
    objective = base.PREFIX

    def loss_sum(self, model: Any, batch: base.Batch) -> Tensor:
        """The place before a target has to tell it; only these go through the head."""
        from torch.nn.functional import cross_entropy

        out = model.model(input_ids=batch.ids, attention_mask=visible(batch))
        wanted = batch.targets[:, 1:]
        chosen = wanted != batch.IGNORE
        logits = model.lm_head(out.last_hidden_state[:, :-1][chosen])
        return cross_entropy(logits.float(), wanted[chosen], reduction="sum")

    def _layer_values(self, tokens: int) -> int:
        """For sequences as long as `length`: attention keeps what is visible to each place as
        numbers, and shared keys and values once for each head.
        """
        p = self.params
        return int(tokens * (10 * p.hidden + 4 * self._inner + p.heads + p.length + 2))

    def _other_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        p = self.params
        turns = 2 * p.hidden // p.heads
        return int(tokens * (2 * p.hidden + 1 + turns) + targets * (p.hidden + vocab_size))


def visible(batch: base.Batch) -> Tensor:
    """Whether a place sees another one: booleans of (sequences, 1, places, places seen).

    All see the prefix, which is what comes before a sequence's first target, and what is not after
    them; nobody sees padding.
    """
    is_prefix = (batch.targets != batch.IGNORE).cumsum(1) == 0
    length = batch.ids.shape[1]
    is_past = batch.attention.new_ones(length, length).tril().bool()
    seen = (is_past | is_prefix[:, None]) & batch.attention.bool()[:, None]
    return seen[:, None]


PLUGIN = Prefix
