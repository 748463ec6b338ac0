"""LLaMA from nothing: each token is predicted from those before it.

As LLaMA (Touvron et al. 2023, section 2.2): RMSNorm before each part, SwiGLU, rotary positions, no
biases. Heads may share keys and values in groups (Ainslie et al. 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from trainer.families import base
from trainer.families.causal import Causal

if TYPE_CHECKING:
    from torch.nn import Module

STEP = 256  # LLaMA's own code rounds the inner width up to a multiple of it


class Params(base.Sizes):
    key_heads: int = Field(
        0, ge=0, le=128, description="Heads of keys and values; they divide heads. 0: as many."
    )
    inner: int = Field(
        0,
        ge=0,
        le=65_536,
        description="Width inside a layer. 0: 8/3 of hidden, rounded up to a multiple of 256.",
    )
    tied: bool = Field(True, description="Score words by the word vectors, not by a matrix more.")

    @model_validator(mode="after")
    def has_groups_and_angles(self) -> Params:
        if self.key_heads and self.heads % self.key_heads:
            raise ValueError(f"heads ({self.heads}) must be a multiple of key_heads: groups share")
        if self.hidden // self.heads % 2:
            raise ValueError(
                f"hidden / heads ({self.hidden // self.heads}) must be even: positions turn pairs"
            )
        return self


class Llama(base.Stacked):
    label = "LLaMA (next word)"
    objective = base.CAUSAL
    Params = Params

    def parameter_count(self, vocab_size: int) -> int:
        h = self.params.hidden
        attention = 2 * h * h + 2 * h * self._key_width
        layer = attention + 3 * h * self._inner + 2 * h
        words = (1 if self.params.tied else 2) * vocab_size * h
        return int(words + self.params.layers * layer + h)

    def used_parameters(self, vocab_size: int) -> int:
        looked_up = 0 if self.params.tied else vocab_size * self.params.hidden
        return self.parameter_count(vocab_size) - looked_up

    @property
    def _key_width(self) -> int:
        """Of all heads of keys; as much again are values."""
        p = self.params
        return int((p.key_heads or p.heads) * p.hidden // p.heads)

    @property
    def _inner(self) -> int:
        """As LLaMA's own code has it."""
        p = self.params
        return int(p.inner or -(-(8 * p.hidden // 3) // STEP) * STEP)

    def _layer_values(self, tokens: int) -> int:
        """A token keeps in a layer: of h values each, what goes into both norms, what these made
        with and without their weights, q, and what attention made of it (8); k and v; four of the
        inner width; and a few numbers. How positions turn is kept once for all sequences, but
        counted for each.
        """
        p = self.params
        return int(tokens * (8 * p.hidden + 2 * self._key_width + 4 * self._inner + p.heads + 2))

    def _other_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        p = self.params
        turns = 2 * p.hidden // p.heads
        return int(tokens * (3 * p.hidden + 1 + turns) + targets * vocab_size)

    def build(self, vocab_size: int, sequence_length: int, pad_id: int) -> Module:
        from transformers import LlamaConfig, LlamaForCausalLM

        p = self.params
        base.require_length(p.length, sequence_length)
        config = LlamaConfig(
            vocab_size=vocab_size,
            hidden_size=p.hidden,
            intermediate_size=self._inner,
            num_hidden_layers=p.layers,
            num_attention_heads=p.heads,
            num_key_value_heads=p.key_heads or p.heads,
            max_position_embeddings=p.length,
            tie_word_embeddings=p.tied,
            bos_token_id=None,
            eos_token_id=None,
            use_cache=False,
        )
        model = LlamaForCausalLM(config)
        # Not before: the padding's word vector would not train, and may also end documents.
        model.config.pad_token_id = pad_id
        return model

    loss_sum = Causal.loss_sum


PLUGIN = Llama
