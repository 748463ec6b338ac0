"""A round's average without a network, and what each member then knows of the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from torch import Tensor

from trainer.engine.learner import Learner
from trainer.strategies.base import Member


def average(
    learners: Sequence[Learner], refused: Collection[int] = ()
) -> tuple[list[Tensor], list[Member]]:
    """The mean of all offers but those of the `refused` ones, by their place; nobody's own."""
    offers = [learner.offer() for learner in learners]
    members = []
    for place, (learner, offer) in enumerate(zip(learners, offers, strict=True)):
        assert offer is not None
        weight = 0.0 if place in refused else offer.weight
        members.append(Member(weight, learner.context.steps, offer.note))
    total = sum(member.weight for member in members)
    shares = [member.weight / total for member in members]
    parts = zip(*(offer.tensors for offer in offers if offer), strict=True)
    return [sum(s * t for s, t in zip(shares, part, strict=True)) for part in parts], members


def end_round(
    learners: Sequence[Learner],
    watching: Sequence[Learner] = (),
    refused: Collection[int] = (),
) -> None:
    """All accept; those `watching` have trained nothing, as the coordinator."""
    mean, members = average(learners, refused)
    for place, learner in enumerate([*learners, *watching]):
        known = [replace(one, is_own=n == place) for n, one in enumerate(members)]
        learner.accept([tensor.clone() for tensor in mean], known)
