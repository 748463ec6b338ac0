"""Who has which documents: dealt out completely, by seed, and as unequally as was asked for."""

from __future__ import annotations

import random
from collections import Counter
from statistics import fmean

import pytest

from trainer.experiment import TOPICS, Experiment
from trainer.recipe import Choice
from trainer.simulator import splits
from trainer.simulator.splits import Shares

LABELS = [number % TOPICS for number in range(600)]
KINDS = ["iid", "dirichlet", "label", "quantity"]


def deal(kind: str, seed: int = 0, labels=LABELS, **more) -> Shares:
    made = Experiment(strategies=(Choice(name="fedavg"),), split=kind, volunteers=10, **more)
    return splits.split(labels, made, random.Random(seed))


def largest_shares(shares: Shares) -> list[float]:
    """Of each volunteer's commonest topic."""
    topics = [Counter(LABELS[number] for number in share) for share in shares]
    return [max(own.values()) / own.total() for own in topics]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.01, 0.3, 100.0])
def test_every_document_has_one_owner_and_nobody_is_without(kind, alpha):
    for seed in range(5):
        shares = deal(kind, seed, alpha=alpha)
        assert sorted(number for share in shares for number in share) == list(range(600))
        assert len(shares) == 10 and all(shares)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_deal_equally_and_others_do_not(kind):
    assert deal(kind, 3) == deal(kind, 3) != deal(kind, 4)


def test_a_smaller_alpha_gives_each_volunteer_fewer_topics():
    skew = {
        alpha: fmean(
            fmean(largest_shares(deal("dirichlet", seed, alpha=alpha))) for seed in range(5)
        )
        for alpha in (0.05, 0.5, 100.0)
    }
    assert skew[0.05] > 0.75 > skew[0.5] > 0.35 > skew[100.0] > 1 / TOPICS


@pytest.mark.parametrize("each", [1, 2, TOPICS])
def test_by_label_everybody_has_so_many_topics(each):
    shares = deal("label", topics_each=each)
    assert {len({LABELS[number] for number in share}) for share in shares} == {each}


def test_by_quantity_amounts_differ_and_topics_hardly():
    shares = deal("quantity", alpha=1.0)
    sizes = sorted(map(len, shares))
    assert sizes[-1] > 5 * sizes[0]
    assert max(largest_shares([share for share in shares if len(share) > 100])) < 0.3


def test_equal_means_equal_amounts():
    assert {len(share) for share in deal("iid")} == {60}


def test_fewer_documents_than_volunteers_are_refused_in_words():
    with pytest.raises(ValueError, match="3 documents cannot be split among 10 volunteers"):
        deal("iid", labels=[0, 1, 2])


def test_dirichlet_shares_sum_to_one_however_small_alpha_is():
    for seed in range(20):
        shares = splits.dirichlet(7, 1e-6, random.Random(seed))
        assert sum(shares) == pytest.approx(1) and min(shares) >= 0
