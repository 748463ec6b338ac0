"""Newcomers and donors that are real averagers: who serves whom, and who is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, AsyncIterator  # noqa: UP035 - hivemind reads this name

import pytest
import torch
from hivemind.p2p import P2PContext
from hivemind.proto import averaging_pb2

from tests.swarm.averagers import Group
from tests.waiting import wait_for
from trainer.swarm import donors, download
from trainer.swarm.averager import RoundAverager

pytestmark = pytest.mark.swarm
ROUND = 7
NUM_VALUES = 1_000_000  # 62 messages of 64 KiB
give = RoundAverager.rpc_download_state


async def give_slowly(
    self: RoundAverager, request: averaging_pb2.DownloadRequest, context: P2PContext
) -> AsyncIterator[averaging_pb2.DownloadData]:
    """In twenty seconds, which are long for a state of 4 MB."""
    async for message in give(self, request, context):
        yield message
        await asyncio.sleep(0.3)


@pytest.fixture
def group(monkeypatch) -> Iterator[Group]:
    monkeypatch.setattr(donors, "TRIAL_S", 2.0)
    made = Group([(NUM_VALUES,)])
    yield made
    made.close()


def add(group: Group, mark: float, rpc: Callable[..., Any] = give, announced: int = ROUND) -> None:
    """A donor whose state says `mark`; a larger `announced` round is asked first."""
    RoundAverager.rpc_download_state = rpc  # type: ignore[method-assign]
    try:
        group.add(source=lambda: ({"round": ROUND}, [torch.full((NUM_VALUES,), mark)]))
    finally:
        RoundAverager.rpc_download_state = give  # type: ignore[method-assign]
    group.averagers[-1].state_sharing_priority = announced


def known_donors(group: Group) -> set[int]:
    """The rounds that donors have announced."""
    found = group.dhts[0].get("group.all_averagers", latest=True)
    return {entry.value for entry in found.value.values()} if found else set()


def fetch(group: Group, number: int) -> float | None:
    """What the state says that member `number` got."""
    found = group.averagers[number].fetch_state(ROUND, 120, lambda: True)
    return None if found is None else float(found[1][0][0])


def test_a_newcomer_leaves_a_throttled_donor_for_a_fast_one(group, monkeypatch):
    monkeypatch.setattr(download, "MOST_SERVED", 1)
    add(group, 0.0, announced=0)
    add(group, 1.0, give_slowly, announced=ROUND + 2)
    add(group, 2.0, announced=ROUND + 1)
    wait_for("donors", lambda: {ROUND + 1, ROUND + 2} <= known_donors(group))
    assert fetch(group, 0) == 2.0
    group.averagers[2].allow_state_sharing = False
    assert fetch(group, 0) == 1.0  # the one that was left has a place free, and is better than none


@pytest.mark.soak  # its rule is proven in tests/trainer/test_donors.py
def test_two_newcomers_and_two_donors_are_a_pair_each(group, monkeypatch):
    """Both call the same donor first, and the second would have to wait for ever there."""
    monkeypatch.setattr(download, "SECOND_THOUGHTS_S", 1e6)
    monkeypatch.setattr(donors, "LONG_S", 1e9)  # nobody goes elsewhere for its slowness
    for _ in range(2):
        add(group, 0.0, announced=0)
    add(group, 1.0, give_slowly, announced=ROUND + 2)
    add(group, 2.0, announced=ROUND + 1)
    wait_for("donors", lambda: {ROUND + 1, ROUND + 2} <= known_donors(group))
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda number: fetch(group, number), range(2)))
    assert sorted(found) == [1.0, 2.0]
