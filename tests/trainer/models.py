"""Small models and recipes for tests, and batches to train them with."""

from __future__ import annotations

from typing import Any

import torch

from trainer.engine.learner import Learner
from trainer.families.base import Batch
from trainer.recipe import Choice, File, Optimizer, Recipe, Round, Text, Tokenizer

torch.set_num_threads(1)  # two threads that wait for each other are slow on a busy machine

SHAPES = {
    "albert": {"hidden": 32, "layers": 2, "heads": 2, "embedding": 16, "length": 32},
    "causal": {"hidden": 32, "layers": 2, "heads": 2, "length": 32},
    "encoder_decoder": {"hidden": 32, "layers": 2, "heads": 2, "length": 32},
    "prefix": {"hidden": 32, "layers": 2, "heads": 2, "inner": 64, "length": 32},
    "llama": {"hidden": 32, "layers": 2, "heads": 4, "key_heads": 2, "inner": 64, "length": 32},
}
VOCABULARY = 64


def make_recipe(family: str = "albert", **changes: Any) -> Recipe:
    file = File(sha256="0" * 64, size_bytes=1, filename="f")
    base: dict[str, Any] = {
        "collaboration": "tiny",
        "family": Choice(name=family, params=SHAPES[family]),
        "strategy": Choice(name="dedloc"),
        "tokenizer": Tokenizer(file=file, vocab_size=VOCABULARY),
        "texts": (Text(kind="site", file=file),),
        "sequence_length": 16,
        "micro_batch": 4,
        "optimizer": Optimizer(learning_rate=1e-2, warmup_rounds=0, schedule="constant"),
        "round": Round(target_samples=8),
    }
    return Recipe(**{**base, **changes})


def make_batch(seed: int = 0, rows: int = 4, chosen: float = 0.3) -> Batch:
    """A masked batch over a few repeated sequences, so that there is something to learn."""
    generator = torch.Generator().manual_seed(seed)
    kinds = torch.arange(8)[torch.randint(8, (rows, 1), generator=generator)]
    ids = 5 + (kinds * 7 + torch.arange(16)) % (VOCABULARY - 5)
    picked = torch.rand(ids.shape, generator=generator) < chosen
    picked[:, 1] = True
    return Batch(ids.masked_fill(picked, 4), ids.masked_fill(~picked, -100), torch.ones_like(ids))


def play_round(learner: Learner, *batches: Batch) -> float:
    """A round alone; its mean loss by target tokens."""
    loss = sum(learner.learn(batch) or 0.0 for batch in batches)
    tokens = learner.context.tokens
    offer = learner.offer()
    assert offer is not None
    learner.accept(offer.tensors, [])
    return loss / tokens


def gradient_of(learner: Learner) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in learner.context.gradient])


def off(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Relative to the length of what is wanted."""
    return float((found - wanted).norm() / wanted.norm())
