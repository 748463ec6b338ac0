"""Tiny bases of several makes, as transformers saves them, and recipes that adapt them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.trainer.models import VOCABULARY, make_recipe
from trainer.bases import describe
from trainer.engine.learner import Learner
from trainer.recipe import Base, Choice, Recipe

SMALL = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
WIDE = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2}
ENCODER = {**WIDE, "intermediate_size": 64, "max_position_embeddings": 32}
ENCODER |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
BART = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64}
BART |= {"decoder_ffn_dim": 64, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
BART |= {"max_position_embeddings": 32, "dropout": 0.0, "decoder_start_token_id": 3}
T5 = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2, "dropout_rate": 0.0}
T5 |= {"decoder_start_token_id": 0}
# {make: (family, class of transformers, its config's values)}
MAKES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": (
        "pretrained_causal",
        "LlamaForCausalLM",
        {
            **WIDE,
            "intermediate_size": 64,
            "num_key_value_heads": 1,
            "max_position_embeddings": 32,
            "tie_word_embeddings": True,
        },
    ),
    "gpt2": (
        "pretrained_causal",
        "GPT2LMHeadModel",
        {"n_embd": 32, "n_head": 2, "n_layer": 2, "n_positions": 32, "resid_pdrop": 0.0}
        | {"embd_pdrop": 0.0, "attn_pdrop": 0.0},
    ),
    "bert": ("pretrained_masked", "BertForMaskedLM", ENCODER),
    "albert": ("pretrained_masked", "AlbertForMaskedLM", {**ENCODER, "embedding_size": 16}),
    "bart": ("pretrained_denoising", "BartForConditionalGeneration", BART),
    "t5": ("pretrained_denoising", "T5ForConditionalGeneration", T5),
}


def make_base(folder: Path, make: str = "llama", vocab_size: int = VOCABULARY) -> Path:
    """Its folder; made anew in each call, always the same."""
    _, kind, values = MAKES[make]
    model_class = getattr(transformers, kind)
    torch.manual_seed(7)
    model = model_class(model_class.config_class(**SMALL, **values, vocab_size=vocab_size))
    with torch.no_grad():
        for param in model.parameters():
            if param.ndim > 1:
                param.normal_(std=0.2)
    model.save_pretrained(folder)
    return folder


@cache
def described(folder: Path) -> Base:
    return describe(folder)


def lora(**params: Any) -> Choice:
    return Choice(name="lora", params={"rank": 4, **params})


def top_layers(layers: int) -> Choice:
    return Choice(name="top_layers", params={"layers": layers})


def adapt(folder: Path, make: str = "llama", **changes: Any) -> Recipe:
    """A recipe for the base in `folder`, with LoRA."""
    changes = {"base": described(folder), "adapter": lora(), **changes}
    return make_recipe(**changes).model_copy(update={"family": Choice(name=MAKES[make][0])})


def make_learner(recipe: Recipe, folder: Path) -> Learner:
    return Learner(recipe, 0, folder)
