"""Real averagers: who carries how much of the average, by measured and by claimed links."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.swarm.averagers import Group, Result
from tests.waiting import wait_for
from trainer.swarm import probe
from trainer.swarm.bandwidth import share_out
from trainer.swarm.verdict import short
from trainer.wire import Outcome

pytestmark = pytest.mark.swarm
SHAPES = [(3000, 1000), (11,)]  # 24 parts in fp32
SIZE = sum(torch.Size(shape).numel() for shape in SHAPES)
TOKENS = [0, 300, 100, 200]  # the first is the coordinator


@pytest.fixture
def groups() -> Iterator[list[Group]]:
    made: list[Group] = []
    yield made
    for group in made:
        group.close()


def offers() -> list[list[torch.Tensor]]:
    made = [[torch.zeros(shape) for shape in SHAPES]]
    for seed in range(1, 4):
        generator = torch.Generator().manual_seed(seed)
        made.append([torch.randn(shape, generator=generator) * 1e-2 for shape in SHAPES])
    return made


def agree(results: list[Result], given: list[list[torch.Tensor]]) -> dict[str, float]:
    """All hold the same right average to the last bit, and know the same shares of it."""
    first, mean = results[0]
    right = sum(o[0] * count / sum(TOKENS) for o, count in zip(given, TOKENS, strict=True))
    torch.testing.assert_close(mean[0], right, rtol=1e-5, atol=1e-7)
    for verdict, tensors in results:
        assert verdict.outcome is Outcome.CLEAN
        assert verdict.shares == first.shares
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(tensors, mean, strict=True))
    assert sum(first.shares.values()) == pytest.approx(1)
    return first.shares


def test_shares_follow_what_links_can_and_a_liars_follow_what_others_saw(groups, monkeypatch):
    async def nothing(averager, peers) -> None:
        """What links can is in the notes here."""

    monkeypatch.setattr(probe.LinkProbe, "_measure_with", nothing)
    group, given = Group(SHAPES, coordinator=True), offers()
    groups.append(group)
    names = [group.add() for _ in range(4)]
    claims = [60.0, 90.0, 20.0, 1e9]
    seen = {short(name): speed / 3 for name, speed in zip(names, [60, 90, 20, 20], strict=True)}
    lies = {n: {"link_mbit_s": claim, "received": seen} for n, claim in enumerate(claims)}
    lies[3]["received"] = {short(names[3]): 1e9}
    results = group.average(given, TOKENS, lies)
    shares = agree(results, given)
    for name, wanted in zip(names, share_out(SIZE, [60.0, 90.0, 20.0, 60.0]), strict=True):
        assert shares[name] == pytest.approx(wanted / SIZE, abs=1.5 / 24)  # to the nearest part
    for name, (verdict, _) in zip(names, results, strict=True):
        vectors = 1 + 2 * shares[name]
        assert verdict.bytes_out == pytest.approx(vectors * 4 * SIZE, rel=0.01)


def test_links_are_measured_with_the_coordinator_at_once_and_with_members_after_an_average(groups):
    group, given = Group(SHAPES, coordinator=True), offers()
    groups.append(group)
    for sends_only in (False, False, True, False):
        group.add(sends_only=sends_only)
    for member in group.averagers[1:]:
        wait_for("a measured link", lambda member=member: member.link_mbit_s is not None)
    results = group.average(given, TOKENS)
    shares = agree(results, given)
    claims = {name: note.link_mbit_s for name, note in results[0][0].notes.items()}
    assert all(claims[name] for name in group.names[1:])
    assert shares[group.names[2]] == 0.0  # it only sends
    wait_for("the coordinator's link", lambda: group.averagers[0].link_mbit_s is not None)


def test_where_the_coordinator_alone_averages_volunteers_carry_nothing_and_get_the_same(groups):
    group, given = Group(SHAPES, coordinator=True, averaged_by="coordinator"), offers()
    groups.append(group)
    for sends_only in (False, True, True, False):
        group.add(sends_only=sends_only)
    results = group.average(given, TOKENS)
    shares = agree(results, given)
    assert [shares[name] for name in group.names] == [1.0, 0.0, 0.0, 0.0]
    for vectors, (verdict, _) in zip((3, 1, 1, 1), results, strict=True):
        wanted = pytest.approx(vectors * 4 * SIZE, rel=1e-4)
        assert verdict.bytes_in == wanted and verdict.bytes_out == wanted


def test_without_the_coordinator_that_alone_averages_there_is_no_average_and_a_reason(groups):
    group, given = Group(SHAPES, averaged_by="coordinator"), offers()
    groups.append(group)
    for _ in range(2):
        group.add()
    for verdict, _ in group.average(given[1:3], TOKENS[1:3]):
        assert verdict.outcome is Outcome.FAILED
        assert "the coordinator, which alone averages here" in verdict.reason
