"""ALBERT: a masked language model whose layers share one set of weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from trainer.families import base

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


class Params(base.Params):
    hidden: int = Field(256, ge=16, le=8192, description="Width of a layer.")
    layers: int = Field(6, ge=1, le=200, description="Passes through the shared layer.")
    heads: int = Field(4, ge=1, le=128, description="Attention heads; must divide the width.")
    embedding: int = Field(128, ge=8, le=4096, description="Width of the word vectors.")
    length: int = Field(512, ge=8, le=8192, description="Longest sequence in tokens.")
    whole_words: bool = Field(False, description="Mask all tokens of a word, or none of them.")
    sentence_order: bool = Field(
        False, description="Also tell whether two segments of a document are in their order."
    )

    @model_validator(mode="after")
    def fits_together(self) -> Params:
        base.require_heads(self.hidden, self.heads)
        return self


class Albert(base.Stacked):
    label = "ALBERT (masked words, shared layers)"
    Params = Params

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        self.objective = base.Objective("masked", params.whole_words, params.sentence_order)

    def parameter_count(self, vocab_size: int) -> int:
        p = self.params
        e, h = p.embedding, p.hidden
        embeddings = (vocab_size + p.length + 2) * e + 2 * e
        projection = e * h + h
        head = (h * e + e) + 2 * e + vocab_size
        order = h * h + h + 2 * h + 2 if p.sentence_order else 0
        return embeddings + projection + self._layer_parameters() + head + order

    def _layer_parameters(self) -> int:
        h, inner = self.params.hidden, 4 * self.params.hidden
        attention = 4 * (h * h + h) + 2 * h
        feed_forward = (h * inner + inner) + (inner * h + h) + 2 * h
        return attention + feed_forward

    def used_parameters(self, vocab_size: int) -> int:
        return (
            self.parameter_count(vocab_size) + (self.params.layers - 1) * self._layer_parameters()
        )

    def _layer_values(self, tokens: int) -> int:
        """A token keeps in a layer, of h values each: q, k, v, what attention made of them, what
        both norms got and made (8), and five of the inner width, as GELU goes in steps (20).
        """
        p = self.params
        return int(tokens * (28 * p.hidden + p.heads + 4))

    def _other_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        p = self.params
        embeddings = tokens * (2 * p.embedding + 2)
        return int(embeddings + targets * (6 * p.embedding + p.hidden + 2 + vocab_size))

    def build(self, vocab_size: int, sequence_length: int, pad_id: int) -> Module:
        from transformers import AlbertConfig, AlbertForMaskedLM, AlbertForPreTraining

        p = self.params
        base.require_length(p.length, sequence_length)
        config = AlbertConfig(
            vocab_size=vocab_size,
            embedding_size=p.embedding,
            hidden_size=p.hidden,
            intermediate_size=4 * p.hidden,
            num_hidden_layers=p.layers,
            num_attention_heads=p.heads,
            max_position_embeddings=p.length,
            pad_token_id=pad_id,
        )
        return AlbertForPreTraining(config) if p.sentence_order else AlbertForMaskedLM(config)

    def layers(self, model: Any) -> Iterable[Module]:
        return model.albert.encoder.albert_layer_groups  # type: ignore[no-any-return]

    def loss_sum(self, model: Any, batch: base.Batch) -> Tensor:
        """Only masked places go through the head: it costs as much as the layers at small sizes.

        The order's mean loss counts as much as that of the masked tokens, as in the paper.
        """
        from torch.nn.functional import cross_entropy

        out = model.albert(
            input_ids=batch.ids, attention_mask=batch.attention, token_type_ids=batch.segments
        )
        chosen = batch.targets != batch.IGNORE
        logits = model.predictions(out.last_hidden_state[chosen])
        loss = cross_entropy(logits.float(), batch.targets[chosen], reduction="sum")
        if batch.swapped is not None:
            order = model.sop_classifier(out.pooler_output)
            loss = loss + batch.tokens * cross_entropy(order.float(), batch.swapped)
        return loss


PLUGIN = Albert
