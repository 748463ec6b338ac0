"""What was read ahead of a lease that is lost meanwhile is never trained on."""

from __future__ import annotations

import pytest

from tests.trainer.test_shards import lease
from trainer.data.marks import Held, Place
from trainer.engine.delivery import Delivery
from trainer.sources.base import SourceUnavailable


class Shards:
    tenures = 0
    in_doubt = False

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.kept: list[int] = []

    def tenure(self, text):
        if self.in_doubt:
            raise SourceUnavailable("another device may have it")
        return self.tenures

    def take(self, text, place):
        self.taken.append(place.position)

    def keep(self, text, place):
        self.kept.append(place.position)


def stream(*tenures):
    """Batches called by their numbers, of what was held then."""
    return iter(
        (f"batch {n}", {0: Place(Held(lease(0), tenure), n, 0, 9)})
        for n, tenure in enumerate(tenures, 1)
    )


def test_c13_batches_of_a_lost_lease_that_were_made_already_are_dropped():
    shards = Shards()
    streams = [stream(0, 0, 0, 0), stream(1, 1)]
    delivery = Delivery(shards)
    batches = delivery.of(lambda: streams.pop(0))
    assert [next(batches), next(batches)] == ["batch 1", "batch 2"]
    shards.tenures = 1
    assert list(batches) == ["batch 1", "batch 2"]
    assert shards.taken == [1, 2, 1, 2]


def test_c13_a_batch_that_has_rows_of_the_lost_lease_and_of_the_next_is_dropped_too():
    shards = Shards()
    streams = [stream(0, 1), stream(1)]
    batches = Delivery(shards).of(lambda: streams.pop(0))
    assert next(batches) == "batch 1"
    shards.tenures = 1
    assert list(batches) == ["batch 1"] and streams == []


def test_while_it_is_in_doubt_whose_a_text_is_nothing_of_it_is_given_out():
    shards = Shards()
    batches = Delivery(shards).of(lambda: stream(0, 0))
    next(batches)
    shards.in_doubt = True
    with pytest.raises(SourceUnavailable, match="another device"):
        next(batches)
    assert shards.taken == [1]


def test_only_what_a_round_learned_is_told_as_read():
    shards = Shards()
    delivery = Delivery(shards)
    batches = delivery.of(lambda: stream(0, 0, 0))
    next(batches)
    learned = delivery.mark
    next(batches)
    delivery.keep(learned)
    assert (shards.taken, shards.kept) == ([1, 2], [1])
