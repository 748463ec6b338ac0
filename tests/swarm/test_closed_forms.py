"""Local steps over real averagers: scalar quadratics, whose course is known exactly.

f_i(x) = a_i/2 (x - b_i)^2 with full-batch gradient descent: K local steps of rate r leave
x - g_i (x - b_i), with g_i = 1 - (1 - r a_i)^K.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tests.swarm.averagers import LIMITS, Group
from tests.trainer.devices import (
    Q3,
    RATE,
    SGD,
    Device,
    imbalance,
    optimum,
    play,
    swarm,
)
from tests.trainer.quadratic import (
    in_the_catalogue,
    make_learner,
    position,
    quadratic,
)
from trainer.engine.ending import members_of
from trainer.engine.learner import Learner
from trainer.strategies.scaffold import Scaffold
from trainer.wire import Outcome

pytestmark = pytest.mark.swarm
PROBLEMS = ((1, 0), (4, 1))  # (a, b)
STEPS = (5, 50)
NUM_ROUNDS = 14
SHARES = [1 - (1 - RATE * a) ** steps for (a, _), steps in zip(PROBLEMS, STEPS, strict=True)]


@pytest.fixture(scope="module")
def pair() -> Iterator[Group]:
    """Neither weighs more than the other, whatever it claims."""
    group = Group([(1,)], limits=replace(LIMITS, most_share=0.5))
    for _ in PROBLEMS:
        group.add()
    yield group
    group.close()


@pytest.fixture
def four() -> Iterator[Group]:
    """Offers of two vectors."""
    group = Group([(1,), (1,)], limits=replace(LIMITS, longest=Scaffold.longest))
    for _ in Q3:
        group.add()
    yield group
    group.close()


def train(group: Group, learners: list[Learner], tokens: Sequence[int] = (100, 100)) -> list[float]:
    """One round of both, each with its own number of local steps; where they are after it."""
    for learner, (a, b), steps in zip(learners, PROBLEMS, STEPS, strict=True):
        for _ in range(steps):
            learner.learn(quadratic(a, b))
    offers = [[t.float() for t in learner.offer().tensors] for learner in learners]
    said = {place: {"steps": steps} for place, steps in enumerate(STEPS)}
    results = group.average(offers, list(tokens), said)
    for name, learner, (verdict, mean) in zip(group.names, learners, results, strict=True):
        assert verdict.outcome is Outcome.CLEAN
        learner.accept([t.double() for t in mean], members_of(verdict, name))
    return [position(learner) for learner in learners]


def test_fedavg_ends_at_its_fixed_point_and_not_at_the_optimum(pair):
    with in_the_catalogue():
        learners = [make_learner("fedavg", x=3.0, **SGD) for _ in PROBLEMS]
        found = [train(pair, learners) for _ in range(NUM_ROUNDS)]
    assert found[0] == pytest.approx([1.6606856787] * 2, abs=1e-6)
    fixed = sum(g * b for g, (_, b) in zip(SHARES, PROBLEMS, strict=True)) / sum(SHARES)
    assert fixed == pytest.approx(0.81551282)  # the optimum is 0.8
    assert found[-1] == pytest.approx([fixed] * 2, abs=1e-5)
    assert found[-1][0] == found[-1][1]  # to the last bit


@pytest.mark.parametrize(
    ("strategy", "params", "first"),
    [
        ("fedavg", {}, 1.6606856787),
        ("fedprox", {"mu": 1}, 1.8928679531),
        ("fednova", {}, 0.5837005842),
    ],
)
def test_with_a_cap_nine_times_the_data_have_the_say_of_the_cap(pair, strategy, params, first):
    """Also in FedNova's length of a step, which follows from the members' weights."""
    with in_the_catalogue():
        learners = [make_learner(strategy, x=3.0, **SGD, **params) for _ in PROBLEMS]
        assert train(pair, learners, tokens=(900, 100)) == pytest.approx([first] * 2, abs=1e-6)


@pytest.mark.parametrize(
    ("strategy", "params", "first", "fixed"),
    [
        ("fedprox", {"mu": 1}, 1.8928679531, 0.79621391),
        ("fednova", {}, 0.5837005842, 0.30653944),
    ],
)
def test_a_strategy_takes_its_known_first_step_and_stays_at_its_fixed_point(
    pair, strategy, params, first, fixed
):
    """FedNova's step is as long as the notes of all members together say."""
    with in_the_catalogue():
        for start, end in ((3.0, first), (fixed, fixed)):
            learners = [make_learner(strategy, x=start, **SGD, **params) for _ in PROBLEMS]
            assert train(pair, learners) == pytest.approx([end] * 2, abs=1e-6)


def test_diloco_follows_its_nesterov_recurrence(pair):
    with in_the_catalogue():
        learners = [make_learner("diloco", x=3.0, **SGD) for _ in PROBLEMS]
        found = [train(pair, learners) for _ in range(NUM_ROUNDS)]
    x, velocity = 3.0, 0.0
    for here in found:
        changes = [g * (x - b) for g, (_, b) in zip(SHARES, PROBLEMS, strict=True)]
        change = sum(changes) / 2
        velocity = 0.9 * velocity + change
        x -= 0.7 * (change + 0.9 * velocity)
        assert here == pytest.approx([x] * 2, abs=1e-5)


def play_there(group: Group, devices: list[Device], refused: int | None) -> None:
    """A round over the network; the refused one claims a weight that its samples do not carry."""
    for device in devices:
        device.learn(10)
    offers = [device.offer() for device in devices]
    said: dict[int, dict] = {place: {"extra": offer.note} for place, offer in enumerate(offers)}
    if refused is not None:
        said[refused]["weight"] = 1e6
    tensors = [[tensor.float() for tensor in offer.tensors] for offer in offers]
    results = group.average(tensors, [1] * len(devices), said)
    for name, device, (verdict, mean) in zip(group.names, devices, results, strict=True):
        assert verdict.outcome is Outcome.CLEAN
        assert set(verdict.refused) == {group.names[place] for place in [refused] if place}
        device.accept([tensor.double() for tensor in mean], members_of(verdict, name))


def test_scaffolds_corrections_stay_in_balance_whoever_is_refused_leaves_or_returns(four):
    """Beside the same rounds in double precision and without a network."""
    there, here = (swarm("scaffold", Q3, 5.0) for _ in range(2))
    for number in range(12):
        refused = 2 if number == 1 else None
        if number == 3:
            four.remove(3)
        if number == 6:
            four.add()
        for devices in (there, here):
            if number == 3:
                devices.pop()
            if number == 6:
                away = Device("scaffold", Q3[3], 1.0, **SGD)
                away.join(devices[0])
                devices.append(away)
        play_there(four, there, refused)
        play(here, 10, refused=set() if refused is None else {refused})
        assert [d.x for d in there] == pytest.approx([d.x for d in here], abs=1e-5)
        if number not in (3, 4):  # the books of the four, then new ones
            assert abs(imbalance(there)) < 1e-5
    assert there[0].x == pytest.approx(optimum(Q3), abs=1e-2)
