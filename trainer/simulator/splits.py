"""Who has which documents: each one belongs to exactly one volunteer, and nobody has none."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from trainer.experiment import Experiment

Shares = list[list[int]]  # numbers of documents, by volunteer


def split(labels: Sequence[int], experiment: Experiment, rng: random.Random) -> Shares:
    """`labels` are the documents'. Raises ValueError when there are fewer than volunteers."""
    if len(labels) < experiment.volunteers:
        raise ValueError(
            f"{len(labels)} documents cannot be split among {experiment.volunteers} volunteers"
        )
    deal: dict[str, Callable[[], Shares]] = {
        "iid": lambda: evenly(labels, experiment.volunteers, rng),
        "dirichlet": lambda: by_topic(labels, experiment.volunteers, experiment.alpha, rng),
        "label": lambda: few_topics(labels, experiment.volunteers, experiment.topics_each, rng),
        "quantity": lambda: by_amount(labels, experiment.volunteers, experiment.alpha, rng),
    }
    return _nobody_without(deal[experiment.split](), rng)


def evenly(labels: Sequence[int], volunteers: int, rng: random.Random) -> Shares:
    order = _shuffled(range(len(labels)), rng)
    return [order[place::volunteers] for place in range(volunteers)]


def by_topic(labels: Sequence[int], volunteers: int, alpha: float, rng: random.Random) -> Shares:
    """Each topic in shares drawn from Dirichlet(alpha, …): Hsu et al. 2019, section 3."""
    shares: Shares = [[] for _ in range(volunteers)]
    for topic in sorted(set(labels)):
        members = [number for number, label in enumerate(labels) if label == topic]
        for own, part in zip(
            shares, _cut(members, dirichlet(volunteers, alpha, rng), rng), strict=True
        ):
            own += part
    return shares


def few_topics(labels: Sequence[int], volunteers: int, each: int, rng: random.Random) -> Shares:
    """Volunteers take turns at the topics, `each` of them; who shares one has equal parts of it."""
    topics = _shuffled(sorted(set(labels)), rng)
    takers: dict[int, list[int]] = {topic: [] for topic in topics}
    for place in range(volunteers * each):
        takers[topics[place % len(topics)]].append(place // each)
    shares: Shares = [[] for _ in range(volunteers)]
    for topic, own in takers.items():
        members = [number for number, label in enumerate(labels) if label == topic]
        equal = [1 / len(own)] * len(own)
        for place, part in zip(own, _cut(members, equal, rng), strict=True):
            shares[place] += part
    return shares


def by_amount(labels: Sequence[int], volunteers: int, alpha: float, rng: random.Random) -> Shares:
    """Amounts drawn from Dirichlet(alpha, …), the same mixture of topics for all."""
    return _cut(range(len(labels)), dirichlet(volunteers, alpha, rng), rng)


def dirichlet(count: int, alpha: float, rng: random.Random) -> list[float]:
    """`count` shares that sum to 1: gamma variates, each divided by their sum."""
    drawn = [rng.gammavariate(alpha, 1.0) for _ in range(count)]
    total = sum(drawn)
    if total <= 0:  # for tiny alpha all may underflow: then one has everything
        drawn[rng.randrange(count)] = total = 1.0
    return [value / total for value in drawn]


def _cut(members: Sequence[int], shares: Sequence[float], rng: random.Random) -> Shares:
    """In parts of these shares, rounded at their ends so that all are dealt out."""
    order, parts, reached, start = _shuffled(members, rng), [], 0.0, 0
    for place, share in enumerate(shares):
        reached += share
        end = len(order) if place == len(shares) - 1 else round(reached * len(order))
        parts.append(order[start:end])
        start = end
    return parts


def _nobody_without(shares: Shares, rng: random.Random) -> Shares:
    """Who has nothing gets a document of who has most."""
    for own in shares:
        if not own:
            most = max(shares, key=len)
            own.append(most.pop(rng.randrange(len(most))))
    return [sorted(own) for own in shares]


def _shuffled(numbers: Sequence[int], rng: random.Random) -> list[int]:
    order = list(numbers)
    rng.shuffle(order)
    return order
