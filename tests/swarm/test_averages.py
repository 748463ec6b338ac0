"""Averages of real averagers: the codecs, and one liar of each kind among honest ones."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.swarm.averagers import Group, Result, mean_of
from tests.waiting import wait_for
from trainer.swarm.codec import Codec
from trainer.swarm.verdict import Verdict
from trainer.wire import Outcome

pytestmark = pytest.mark.swarm
SHAPES = [(300, 1000), (7,), (50_000,)]
TOKENS = [0, 300, 100, 200]  # the first is the coordinator
PARTS_BYTES = 4 * sum(torch.Size(shape).numel() for shape in SHAPES)


@pytest.fixture
def make() -> Iterator[Callable[..., Group]]:
    made: list[Group] = []

    def start(codec: str = "fp32", liar: Callable[[str], Any] | None = None) -> Group:
        group = Group(SHAPES, codec, coordinator=True)
        made.append(group)
        for _ in range(3):
            group.add()
        group.add(liar) if liar else group.add()
        return group

    yield start
    for group in made:
        group.close()


def offers() -> list[list[torch.Tensor]]:
    made = []
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        made.append([torch.randn(shape, generator=generator) * 1e-2 for shape in SHAPES])
    made[0] = [torch.zeros(shape) for shape in SHAPES]
    return made


def agree(results: list[Result]) -> None:
    """All members hold the same average to the last bit, and the same verdict."""
    first, mean = results[0]
    for verdict, tensors in results[1:]:
        for mine, theirs in zip(tensors, mean, strict=True):
            assert torch.equal(mine, theirs)
        mine, theirs = verdict.summary(), first.summary()
        for figure in ("outcome", "members", "samples", "tokens", "loss", "refused", "lost"):
            assert getattr(mine, figure) == getattr(theirs, figure)


def error(mean: list[torch.Tensor], wanted: list[torch.Tensor]) -> float:
    pairs = list(zip(mean, wanted, strict=True))
    difference = sum(float((a - b).double().square().sum()) for a, b in pairs) ** 0.5
    return difference / sum(float(b.double().square().sum()) for _, b in pairs) ** 0.5


@pytest.mark.parametrize(
    ("codec", "most_error", "most_bytes"),
    [("fp32", 1e-6, 1.01), ("fp16", 5e-4, 0.51), ("int8", 2e-2, 0.27)],
)
def test_d06_all_members_end_with_the_same_average_whatever_the_codec(
    make, codec, most_error, most_bytes
):
    group, given = make(codec), offers()
    results = group.average(given, TOKENS)
    assert {verdict.outcome for verdict, _ in results} == {Outcome.CLEAN}
    agree(results)
    assert error(results[0][1], mean_of(given, TOKENS)) < most_error
    for way in ("bytes_out", "bytes_in"):  # each member's vector out, and its average back in
        carried = sum(getattr(verdict, way) for verdict, _ in results)
        assert 0 < carried < 2 * 3 * PARTS_BYTES * most_bytes

    huge = [[torch.full(shape, 1e6) for shape in SHAPES] for _ in range(4)]
    huge[0] = given[0]
    results = group.average(huge, TOKENS)
    agree(results)
    assert error(results[0][1], huge[1]) < 1e-2


LIES = [
    ({"weight": 1e6}, "claimed a weight of 1,000,000 for 200 tokens"),
    ({"weight": 1e6, "tokens": 10**6, "samples": 10**6}, "nobody can have more than 3,000"),
    ({"weight": 2500.0, "tokens": 2500, "samples": 2500}, "at most 400 were seen of it"),
    ({"norm": 1e6}, "had a norm of 1e+06"),
    ({"fingerprint": (1.0, 2.0, 10.0)}, "began from parameters that are not the swarm's"),
    ({"round": 2**16}, "too late"),
]


def test_d05_a_lie_or_a_late_offer_is_refused_by_name_and_nobody_elses_weights_move(make):
    group, given = make(), offers()
    me = group.names[3]
    for number, (lie, words) in enumerate(LIES, start=1):
        lies = {3: dict(lie), 0: {"seen": {me[-12:]: 400}}}
        if "round" in lie:
            lies[3]["round"] = lie["round"] + number  # the same group, an older or a later round
        results = group.average(given, TOKENS, lies)
        agree(results if "round" not in lie else results[:3])
        for verdict, mean in results[:3]:
            assert verdict.outcome is Outcome.CLEAN
            assert verdict.refused.keys() == {me} and words in verdict.refused[me]
            assert error(mean, mean_of(given[:3], TOKENS[:3])) < 1e-6
        if "round" not in lie:
            assert words in results[3][0].refused[me]  # it knows why, too


def test_d01_an_empty_offer_gets_the_average_and_all_empty_ones_change_nothing(make):
    group, given = make(), offers()
    results = group.average(given, [0, 0, 0, 200], {3: {"samples": 30}})
    agree(results)
    assert error(results[1][1], given[3]) < 1e-6
    assert results[1][0].summary().members == 1
    results = group.average(given, [0, 0, 0, 0])
    agree(results)
    assert results[0][0].tokens == 0
    assert not any(tensor.any() for tensor in results[0][1])


class Liar(Codec):
    """Departs from the truth in what it sends, not in what it averages for others."""

    def compress(self, tensor, info=None, allow_inplace=False):
        return super().compress(tensor) if info is None else self.lie(tensor, info)

    def lie(self, tensor, info):
        raise NotImplementedError


class FromTheStart(Liar):
    """Parts that are not finite."""

    def lie(self, tensor, info):
        message = super().compress(tensor)
        message.buffer = (tensor.detach().float() * float("nan")).numpy().tobytes()
        return message


class Late(FromTheStart):
    """Only after its first part, whoever reduces that one."""

    sent = 0

    def lie(self, tensor, info):
        self.sent += 1
        return super().lie(tensor, info) if self.sent > 1 else super().compress(tensor)


class AnotherShape(Liar):
    def lie(self, tensor, info):
        return super().compress(torch.cat([tensor, torch.zeros(1)]))


class Longer(Liar):
    """A thousand times as long as its note says."""

    def lie(self, tensor, info):
        return super().compress(tensor * 1000)


class Slow(Codec):
    """Takes long enough for somebody to leave in the middle; what was forgotten comes to light."""

    def compress(self, tensor, info=None, allow_inplace=False):
        time.sleep(0.5)
        gc.collect()
        return super().compress(tensor)


@pytest.fixture
def complaints(tmp_path) -> Iterator[Path]:
    """What asyncio has to say in all processes that are made from here on."""
    handler = logging.FileHandler(tmp_path / "complaints")
    logging.getLogger("asyncio").addHandler(handler)
    yield tmp_path / "complaints"
    logging.getLogger("asyncio").removeHandler(handler)
    handler.close()


def test_an_average_that_ends_after_its_member_let_go_of_it_raises_nothing(complaints, make):
    group, given = make(liar=Slow), offers()

    def end(leaver: int | None = None) -> Verdict:
        return group.average(given, TOKENS, leaver=leaver)[3][0]

    wait_for("an average it left", lambda: end(leaver=3).reason == "left before it was done")
    wait_for("the next one", lambda: end().outcome is Outcome.CLEAN)
    assert complaints.read_text() == ""


@pytest.mark.parametrize(
    ("liar", "words"),
    [
        (FromTheStart, "was not finite"),
        (Late, "was not finite"),
        (AnotherShape, "had another shape"),
        (Longer, "was longer than its declared norm"),
    ],
)
def test_what_reducers_find_in_the_parts_is_known_to_all_and_to_the_liar(make, liar, words):
    group, given = make(liar=liar), offers()
    me = group.names[3]
    results = group.average(given, TOKENS)
    said = [(verdict.outcome, verdict.refused, verdict.reason) for verdict, _ in results]
    assert all(refused.get(me) == words for _, refused, _ in said), said
    assert not results[3][0].applies
    honest = results[:3]
    outcomes = {verdict.outcome for verdict, _ in honest}
    assert len(outcomes) == 1  # in spite of that all have got everything, or none applies it
    if outcomes == {Outcome.CLEAN}:
        agree(honest)
        assert error(honest[0][1], mean_of(given[:3], TOKENS[:3])) < 1e-6

    barred = {number: {"barred": {me[-12:]: "is set aside"}} for number in range(3)}
    results = group.average(given, TOKENS, barred)
    for verdict, mean in results[:3]:
        assert verdict.outcome is Outcome.CLEAN
        assert me in verdict.refused
        assert error(mean, mean_of(given[:3], TOKENS[:3])) < 1e-6
