"""A T5-style encoder and decoder: it reads a text with gaps and writes what was in them.

As T5 1.0 (Raffel et al. 2020, section 2.1): no biases, relative positions, ReLU, word vectors that
are tied. Widths as there: what is inside a layer is four times as wide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from trainer.families import _spans, base

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

DISTANCES = 32  # that relative positions tell apart, in transformers' T5Config


class Params(base.Sizes):
    layers: int = Field(4, ge=1, le=100, description="Of the encoder, and as many of the decoder.")


class EncoderDecoder(base.Family):
    label = "Encoder and decoder (missing spans, T5)"
    objective = base.SPANS
    Params = Params

    def parameter_count(self, vocab_size: int) -> int:
        p = self.params
        h = p.hidden
        attention, feed_forward = 4 * h * h + h, 8 * h * h + h  # each with its norm
        layers = p.layers * (3 * attention + 2 * feed_forward)
        return vocab_size * h + layers + 2 * (DISTANCES * p.heads + h)

    def activation_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        """About, for sequences as long as `length`: attention keeps its scores, as positions are
        among them. A decoder's layer keeps the encoder's keys and values, too.
        """
        p = self.params
        scores = p.heads * p.length
        read = tokens * (p.layers * (16 * p.hidden + scores) + 3 * p.hidden)
        written = targets * (p.layers * (19 * p.hidden + scores) + 3 * p.hidden + vocab_size)
        return int(read + written)

    def build(self, vocab_size: int, sequence_length: int, pad_id: int) -> Module:
        from transformers import T5Config, T5ForConditionalGeneration

        p = self.params
        base.require_length(p.length, sequence_length)
        config = T5Config(
            vocab_size=vocab_size,
            d_model=p.hidden,
            d_kv=p.hidden // p.heads,
            d_ff=4 * p.hidden,
            num_layers=p.layers,
            num_heads=p.heads,
            relative_attention_num_buckets=DISTANCES,
            dropout_rate=0.0,
            pad_token_id=pad_id,
            eos_token_id=None,
            use_cache=False,
        )
        config.decoder_start_token_id = pad_id
        return T5ForConditionalGeneration(config)

    def loss_sum(self, model: Any, batch: base.Batch) -> Tensor:
        return _spans.loss_sum(model, batch)


PLUGIN = EncoderDecoder
