"""A round's average without a network, and what each member then knows of the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from trainer.strategies.base import Member
from trainer.swarm.codec import Codec
from trainer.swarm.weights import capped

Learners = Sequence[Any]  # `Learner`s, or tests' `Device`s


def average(
    learners: Learners,
    refused: Collection[int] = (),
    lost: Collection[int] = (),
    codec: Codec | None = None,
    most_share: float = 1.0,
) -> tuple[list[Tensor], list[Member]]:
    """The mean of all offers but those of the `refused` ones, by their place; nobody's own. None
    weighs more than `most_share`.

    Who was `lost` is in the mean of the last tensor and in no other. With a codec, offers and mean
    are what arrives.
    """
    arrives = codec.as_received if codec else (lambda tensor: tensor)
    offers = [learner.offer() for learner in learners]
    taken = capped({str(n): offer.weight for n, offer in enumerate(offers)}, most_share)
    offers = [replace(offer, weight=taken[str(n)]) for n, offer in enumerate(offers)]
    members = []
    for place, (learner, offer) in enumerate(zip(learners, offers, strict=True)):
        weight = 0.0 if place in refused or place in lost else offer.weight
        members.append(Member(weight, learner.context.steps, offer.note, place in lost))
    weights = [member.weight for member in members]
    *most, last = zip(*([arrives(t) for t in offer.tensors] for offer in offers), strict=True)
    with_lost = [
        offer.weight if member.lost else member.weight
        for offer, member in zip(offers, members, strict=True)
    ]
    mean = [*(_mean(part, weights) for part in most), _mean(last, with_lost)]
    return [arrives(tensor) for tensor in mean], members


def _mean(tensors: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    total = sum(weights)
    return sum(w / total * t for w, t in zip(weights, tensors, strict=True))  # type: ignore[return-value]


def end_round(
    learners: Learners,
    watching: Learners = (),
    refused: Collection[int] = (),
    lost: Collection[int] = (),
    codec: Codec | None = None,
    most_share: float = 1.0,
) -> None:
    """All but the lost accept; those `watching` have trained nothing, as the coordinator."""
    mean, members = average(learners, refused, lost, codec, most_share)
    for place, learner in enumerate([*learners, *watching]):
        known = [replace(one, is_own=n == place) for n, one in enumerate(members)]
        if place not in lost:
            learner.accept([tensor.clone() for tensor in mean], known)
