"""A small GPT-2: each token is predicted from those before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.families import base

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


class Causal(base.Stacked):
    label = "GPT-2 (next word)"
    objective = base.CAUSAL
    Params = base.Sizes

    def parameter_count(self, vocab_size: int) -> int:
        p = self.params
        h, inner = p.hidden, 4 * p.hidden
        attention = (h * 3 * h + 3 * h) + (h * h + h)
        feed_forward = (h * inner + inner) + (inner * h + h)
        layer = attention + feed_forward + 4 * h
        return (vocab_size + p.length) * h + p.layers * layer + 2 * h

    def _layer_values(self, tokens: int) -> int:
        """As in ALBERT, whose layers are of the same kind."""
        p = self.params
        return int(tokens * (28 * p.hidden + p.heads + 4))

    def _other_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        """With the scores of every token."""
        return int(tokens * (2 * self.params.hidden + 2) + targets * vocab_size)

    def build(self, vocab_size: int, sequence_length: int, pad_id: int) -> Module:
        from transformers import GPT2Config, GPT2LMHeadModel

        p = self.params
        base.require_length(p.length, sequence_length)
        config = GPT2Config(
            vocab_size=vocab_size,
            n_embd=p.hidden,
            n_layer=p.layers,
            n_head=p.heads,
            n_positions=p.length,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            pad_token_id=pad_id,
            bos_token_id=None,
            eos_token_id=None,
            use_cache=False,
        )
        return GPT2LMHeadModel(config)

    def loss_sum(self, model: Any, batch: base.Batch) -> Tensor:
        """`targets` holds the ids themselves; the shift by one place is done here."""
        from torch.nn.functional import cross_entropy

        logits = model(input_ids=batch.ids, attention_mask=batch.attention).logits
        return cross_entropy(
            logits[:, :-1].flatten(0, 1).float(),
            batch.targets[:, 1:].flatten(),
            ignore_index=batch.IGNORE,
            reduction="sum",
        )


PLUGIN = Causal
