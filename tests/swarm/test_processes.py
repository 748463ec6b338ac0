"""A peer whose processes are killed says so, and nothing of them is left."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil
import pytest

from tests.swarm.parts import parts_of, shared_memory_of, sockets_of
from tests.swarm.site import is_running
from tests.swarm.swarm import Swarm
from tests.waiting import wait_for

pytestmark = pytest.mark.swarm
KILLED = "was killed (SIGKILL, as when memory runs out)"
WORDS = {
    "reader": f"the process that reads its texts {KILLED}",
    "averaging": f"its averaging process {KILLED}",
    "network": f"its network process {KILLED}",
    "daemon": "its network process's daemon ended by itself",
    "follower": f"a process of this device's group {KILLED}",
}


@pytest.fixture(scope="module")
def swarm(tmp_path_factory):
    swarm = Swarm(tmp_path_factory.mktemp("swarm"), pause_s=0.2, target_samples=100)
    yield swarm
    swarm.close()


@pytest.mark.parametrize(
    "part",  # of a whole agent the averaging process is killed in test_site_agents.py
    [pytest.param(p, marks=[pytest.mark.soak] * (p in ("averaging", "daemon"))) for p in WORDS],
)
def test_a_peer_whose_process_is_killed_names_it_and_leaves_nothing(swarm: Swarm, part: str):
    if not swarm.members:
        swarm.open()
    member = swarm.add(part, num_processes=2 if part == "follower" else 1)
    wait_for("its rounds", lambda: member.round >= 1)
    pid, parts = member.process.pid, parts_of(member.process.pid)
    sockets = sockets_of(pid)
    assert len(sockets) >= 2 and all(path.exists() for path in sockets)
    parts[part].kill()
    assert member.process.wait(60) == 0
    assert member.said("left") == [{"cause": f"restarting: {WORDS[part]}"}]
    assert not any(map(is_running, parts.values()))
    assert not [path for path in sockets if path.exists()]
    pids = [pid, *(one.pid for one in parts.values())]
    wait_for("end of its shared memory", lambda: not shared_memory_of(*pids))  # torch's own process
    assert "Traceback" not in member.log()


def living_of_session(number: int) -> list[int]:
    found = []
    for pid in psutil.pids():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(pid) == number and is_running(psutil.Process(pid)):
                found.append(pid)
    return found


@pytest.mark.parametrize("part", ["averaging", pytest.param("follower", marks=pytest.mark.soak)])
def test_a_peer_whose_process_is_killed_while_it_starts_names_it_and_leaves_nothing(
    swarm: Swarm, part: str
):
    if not swarm.members:
        swarm.open()
    size = 2 if part == "follower" else 1
    member = swarm.add(f"early-{part}", num_processes=size, lies={"dies early": part})
    assert member.process.wait(60) == 0
    assert member.said("left") == [{"cause": f"restarting: {WORDS[part]}"}]
    pid = member.process.pid  # of its session, too
    wait_for("end of its processes", lambda: not living_of_session(pid))
    wait_for("end of its shared memory", lambda: not shared_memory_of(pid))
    assert "Traceback" not in member.log()
