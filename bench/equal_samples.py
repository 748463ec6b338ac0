"""Two peers in one process: the held-out loss after so many samples of the demo's text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from trainer.engine import texts
from trainer.engine.learner import Learner
from trainer.families.base import CAUSAL, Batch
from trainer.recipe import Choice, File, Optimizer, Recipe, Text, Tokenizer
from trainer.text import tokenizer
from webapp.recipes.corpora.base import is_held_out, write
from webapp.recipes.corpora.english import corpus

VOCABULARY = 1024
SHAPE = {"hidden": 64, "layers": 2, "heads": 2, "length": 32}
MICRO_BATCH = 8
HELD_OUT_SAMPLES = 800
BATCHES = 8000  # of one peer
WARM = 0.05  # of all rounds


class Task:
    """Text, tokenizer and batches of the demo, for a smaller model that trains in minutes."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)
        documents = corpus().documents
        self._train, self._held_out = folder / "train.jsonl", folder / "held-out.jsonl"
        write((text for text in documents if not is_held_out(text)), self._train)
        write((text for text in documents if is_held_out(text)), self._held_out)
        path = folder / "tokenizer.json"
        tokenizer.train_tokenizer(documents[:2000], path, VOCABULARY)
        self._tokenizer = tokenizer.Tokenizer(path, VOCABULARY)

    def recipe(self, strategy: Choice, rounds: int, learning_rate: float) -> Recipe:
        file = File(sha256="0" * 64, size_bytes=1, filename="f")
        return Recipe(
            collaboration="bench",
            family=Choice(name="causal", params=SHAPE),
            strategy=strategy,
            tokenizer=Tokenizer(file=file, vocab_size=VOCABULARY),
            texts=(Text(kind="site", file=file),),
            held_out=Text(kind="site", file=file),
            sequence_length=32,
            micro_batch=MICRO_BATCH,
            optimizer=Optimizer(
                learning_rate=learning_rate,
                warmup_rounds=int(WARM * rounds),
                total_rounds=rounds,
            ),
        )

    def batches(self, recipe: Recipe, peer: int) -> Iterator[Batch]:
        seed = f"peer {peer}"
        return texts.training_batches(recipe, (self._train,), self._tokenizer, CAUSAL, seed)

    def held_out_loss(self, strategy: Choice, batches_a_round: int, learning_rate: float) -> float:
        """After BATCHES micro-batches of each of two peers, averaged every `batches_a_round`."""
        rounds = BATCHES // batches_a_round
        recipe = self.recipe(strategy, rounds, learning_rate)
        peers = [Learner(recipe, self._tokenizer.pad) for _ in range(2)]
        data = [self.batches(recipe, number) for number in range(2)]
        for _ in range(rounds):
            for peer, source in zip(peers, data, strict=True):
                for _ in range(batches_a_round):
                    peer.learn(next(source))
            accept_mean(peers)
        held_out = texts.held_out_batches(
            recipe, self._held_out, self._tokenizer, CAUSAL, HELD_OUT_SAMPLES
        )
        return peers[0].evaluate(held_out)[0]


def accept_mean(peers: list[Learner]) -> None:
    offers = [offer for peer in peers if (offer := peer.offer())]
    total = sum(offer.weight for offer in offers)
    parts = zip(*(offer.tensors for offer in offers), strict=True)
    shares = [offer.weight / total for offer in offers]
    mean = [sum(s * t for s, t in zip(shares, part, strict=True)) for part in parts]
    for peer in peers:
        peer.accept([tensor.clone() for tensor in mean], [])
