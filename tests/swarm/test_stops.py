"""A stop in the middle of something ends a peer in order: quickly, in silence, and as a whole."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable

import psutil
import pytest

from tests.swarm.parts import shared_memory_of, sockets_of
from tests.swarm.site import is_running
from tests.swarm.swarm import Member, Swarm
from tests.waiting import wait_for
from trainer.wire import Wish

pytestmark = pytest.mark.swarm


@pytest.fixture
def swarm(tmp_path):
    swarm = Swarm(tmp_path, big=True, target_samples=8, averaging_s=100, deadline_s=300)
    yield swarm
    swarm.close()


def start(swarm: Swarm, **changes) -> Member:
    member = swarm.prepare("stopped", **changes)
    member.program = "tests.swarm.signalled"
    member.start()
    return member


def assert_it_stops(member: Member, send: Callable[[int], None]) -> None:
    pid = member.process.pid
    parts, sockets = psutil.Process(pid).children(recursive=True), sockets_of(pid)
    assert {"p2pd"} <= {one.name() for one in parts}
    assert sockets
    send(pid)
    assert member.process.wait(60) == 0  # it would be 130 if it had taken too long
    assert member.said("left") == [{"cause": "stopped"}]
    wait_for("end of torch's own process", lambda: not any(map(is_running, parts)))
    assert not [path for path in sockets if path.exists()]
    assert not shared_memory_of(pid, *(one.pid for one in parts))
    assert "Traceback" not in member.log()


def terminate(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def press_ctrl_c(pid: int) -> None:
    """A terminal sends it to the whole group of processes."""
    os.killpg(pid, signal.SIGINT)


def test_while_its_libraries_are_loaded_it_makes_no_model(swarm: Swarm):
    swarm.prepare("coordinator", role="coordinator")
    member = swarm.prepare("stopped", tokenizer="none")  # without one the engine fails
    member.start()
    member.wish(Wish.STOP)
    assert member.process.wait(60) == 0
    assert member.said("left") == [{"cause": "stopped"}]


def test_while_it_joins_a_swarm_that_does_not_answer(swarm: Swarm):
    with socket.create_server(("127.0.0.1", swarm.port)) as silent:
        swarm.prepare("coordinator", role="coordinator")
        member = start(swarm)
        held, _ = silent.accept()
        with held:  # and never says a word
            wait_for("its network", lambda: sockets_of(member.process.pid))
            assert_it_stops(member, press_ctrl_c)


def test_while_it_takes_the_state_from_a_slow_peer(swarm: Swarm):
    donor = swarm.prepare("coordinator", role="coordinator")
    donor.program = "tests.swarm.donor"
    donor.start("50", "dawdles")
    member = start(swarm)
    wait_for("a part of the state", lambda: (donor.folder / "giving").exists())
    assert member.activity() == "catching_up"
    assert_it_stops(member, terminate)


@pytest.mark.parametrize("send", [terminate, pytest.param(press_ctrl_c, marks=pytest.mark.soak)])
def test_in_an_average_over_a_slow_link(swarm: Swarm, send: Callable[[int], None]):
    coordinator = swarm.add("coordinator", role="coordinator", lies={"drag": 2.0})
    wait_for("open swarm", lambda: coordinator.said("swarm_opened"))
    member = start(swarm)
    wait_for("an average", lambda: member.activity() == "averaging")
    assert_it_stops(member, send)
