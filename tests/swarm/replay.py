"""A swarm's training done again by one process, in plain torch, from what the receipts say.

A peer's batches follow from its seed, and its receipts say how many samples of them went into which
round: that is all it takes to form the same large batches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.swarm.swarm import Member, Swarm
from trainer import catalogue
from trainer.engine import checkpoint, texts
from trainer.families.base import Batch
from trainer.text.tokenizer import Tokenizer

EPSILON = 1e-6  # AdamW's, in the engine


def batches_by_round(swarm: Swarm, member: Member) -> dict[int, list[Batch]]:
    """Of a member that has started once; what was dropped is passed over."""
    recipe = swarm.recipe
    tokenizer = Tokenizer(swarm.tokenizer, recipe.tokenizer.vocab_size)
    objective = catalogue.create("families", recipe.family).objective
    seed = f"{recipe.seed}/{member.peer_id}/1/0"
    source = texts.training_batches(recipe, (swarm.text,), tokenizer, objective, seed)
    used: dict[int, list[Batch]] = defaultdict(list)
    for receipt in member.said("receipt"):
        taken = list(_take(source, receipt["samples"]))
        if receipt["accepted"]:
            used[receipt["round"]] += taken
    return used


def _take(source: Iterator[Batch], samples: int) -> Iterator[Batch]:
    while samples > 0:
        batch = next(source)
        samples -= batch.samples
        yield batch
    assert samples == 0, "a receipt cuts a micro-batch in two"


def large_batches(swarm: Swarm, members: Sequence[Member]) -> Iterator[dict[str, Tensor]]:
    """Parameters by name after 0, 1, 2 … steps of DeDLOC's, a constant rate after the warm-up."""
    torch.set_num_threads(1)  # more would wait for each other on a busy machine
    recipe, options = swarm.recipe, swarm.recipe.optimizer
    family = catalogue.create("families", recipe.family)
    tokenizer = Tokenizer(swarm.tokenizer, recipe.tokenizer.vocab_size)
    torch.manual_seed(recipe.seed)
    model = family.build(recipe.tokenizer.vocab_size, recipe.sequence_length, tokenizer.pad)
    model.train()
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": options.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ],
        betas=(options.beta1, options.beta2),
        eps=EPSILON,
    )
    shares = [batches_by_round(swarm, member) for member in members]
    for number in count():
        yield {name: param.detach().clone() for name, param in model.named_parameters()}
        batches = [batch for share in shares for batch in share.get(number, [])]
        for batch in batches:
            family.loss_sum(model, batch).backward()
        tokens = sum(batch.tokens for batch in batches)
        for param in model.parameters():
            assert param.grad is not None
            param.grad /= tokens
        torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip_norm)
        warm = min((number + 1) / options.warmup_rounds, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = warm * options.learning_rate
        optimizer.step()
        optimizer.zero_grad()


def last_checkpoint(coordinator: Member) -> tuple[int, dict[str, Tensor]]:
    """Rounds done and parameters, as the coordinator left them."""
    path: Path = next(checkpoint.newest_first(coordinator.folder / "checkpoints"))
    tensors = load_file(path)
    rounds = coordinator.said("checkpoint")[-1]["round"]
    params = {n.removeprefix("model."): t for n, t in tensors.items() if n.startswith("model.")}
    return rounds, params


def deviation(swarm: Swarm, members: Sequence[Member], coordinator: Member) -> tuple[int, float]:
    """Rounds done, and how far the swarm's model is from the replayed one, relative to the way from
    the first parameters to it (lengths over all tensors)."""
    rounds, learned = last_checkpoint(coordinator)
    models = large_batches(swarm, members)
    first, replayed = next(models), next(islice(models, rounds - 1, None))
    assert learned.keys() == replayed.keys()
    return rounds, _distance(learned, replayed) / _distance(first, replayed)


def _distance(left: dict[str, Tensor], right: dict[str, Tensor]) -> float:
    return sum(float((left[n] - right[n]).double().square().sum()) for n in right) ** 0.5
