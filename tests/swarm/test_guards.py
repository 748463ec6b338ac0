"""What hivemind leaves open and we close, each without a whole swarm."""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from tests.swarm.swarm import ROOT
from tests.waiting import wait_for
from trainer.swarm import leftovers
from trainer.swarm.codec import Codec, Unusable
from trainer.swarm.identity import IdentityError, load_or_make, peer_id_of
from trainer.swarm.linger import until_closed
from trainer.swarm.pace import LONGEST_PAUSE_S, PacedKeyManager
from trainer.swarm.reducer import CheckedReducer, Entry


async def reduce(*offers: tuple[torch.Tensor, float], norm: float = 10.0) -> torch.Tensor:
    """The average of offers of one part, each with its share of the weight."""
    entries = [Entry(share, norm) for _, share in offers]
    reducer = CheckedReducer((torch.Size([2]),), entries, Codec("fp32"))

    async def send(number: int, part: torch.Tensor) -> torch.Tensor | None:
        try:
            return (await reducer.accumulate_part(number, 0, part)).tensor
        except Unusable:
            reducer.on_sender_failed(number)
            return None

    results = await asyncio.gather(*(send(i, part) for i, (part, _) in enumerate(offers)))
    return next(result for result in results if result is not None)


async def test_a_part_that_is_not_usable_reaches_nobody():
    good = torch.tensor([1.0, 2.0])
    for bad in (
        torch.tensor([float("nan"), 0.0]),
        torch.tensor([float("inf"), 0.0]),
        torch.zeros(3),
        torch.full((2,), 100.0),
    ):
        assert torch.equal(await reduce((good, 0.25), (bad, 0.5)), good)


async def test_an_average_is_weighted_and_an_empty_offer_changes_nothing():
    mean = await reduce(
        (torch.ones(2), 1 / 3), (torch.full((2,), 2.0), 2 / 3), (torch.zeros(2), 0.0)
    )
    torch.testing.assert_close(mean, torch.full((2,), 5 / 3))


async def test_a_refused_offer_of_any_size_weighs_nothing():
    mean = await reduce((torch.ones(2), 1.0), (torch.full((2,), 1e30), 0.0))
    assert torch.equal(mean, torch.ones(2))


async def test_d01_offers_that_are_all_empty_average_to_zero_and_not_to_nan():
    assert torch.equal(await reduce((torch.zeros(2), 0.0), (torch.zeros(2), 0.0)), torch.zeros(2))


class SilentDht:
    peer_id = None

    async def get(self, *_args, **_options):
        return None


async def test_a_waiting_peer_asks_the_dht_about_once_a_second():
    keys = PacedKeyManager(SilentDht(), "swarm", "01", None)
    began, asked = time.monotonic(), 0
    while time.monotonic() - began < 4:
        await keys.get_averagers(keys.current_key, only_active=True)
        asked += 1
    assert asked <= 4 / LONGEST_PAUSE_S + 6


async def test_a_writer_waits_until_its_reader_has_closed():
    async def two():
        yield 1
        yield 2

    stream = until_closed(two())
    assert [await anext(stream), await anext(stream)] == [1, 2]
    waiting = asyncio.ensure_future(anext(stream))
    done, _ = await asyncio.wait({waiting}, timeout=0.2)
    assert not done
    waiting.cancel()


def test_an_identity_is_kept_and_names_the_peer(tmp_path: Path):
    first, again = load_or_make(tmp_path / "key"), load_or_make(tmp_path / "key")
    assert first.public_text == again.public_text
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    from hivemind.p2p import PeerID

    assert PeerID.from_identity((tmp_path / "key").read_bytes()).to_base58() == first.peer_id
    assert peer_id_of(first.public_text) == first.peer_id


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x08\x00\x12\x05abc"])
def test_a_broken_identity_is_refused_with_its_path(tmp_path: Path, content: bytes):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(IdentityError, match="delete the file"):
        load_or_make(tmp_path / "key")


def test_leftovers_of_dead_processes_are_swept_and_no_others(tmp_path: Path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in (f"torch_{dead.pid}_1", f"torch_{dead.pid}_2", f"torch_{os.getpid()}_1"):
        (tmp_path / name).write_bytes(b"0" * 4096)
    with (tmp_path / f"torch_{dead.pid}_2").open("rb") as file:  # its child still uses it
        held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    (tmp_path / "torch_unknown").touch()
    for name in ("dead", "live", "young"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / f"hivemind-p2pd-{name}.sock"))
        if name == "live":
            listener.listen()
            live = listener
        else:
            listener.close()
        if name != "young":
            os.utime(tmp_path / f"hivemind-p2pd-{name}.sock", (0, 0))
    assert leftovers.sweep(shared_memory=tmp_path, sockets=tmp_path) == 2
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        f"torch_{dead.pid}_2",
        f"torch_{os.getpid()}_1",
        "torch_unknown",
        "hivemind-p2pd-live.sock",
        "hivemind-p2pd-young.sock",
    }
    live.close()
    held.close()


FORKS = """
import multiprocessing, time
from trainer.swarm import orphans
with orphans.children_end_with_us():
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_child_dies_with_its_parent_and_ignores_its_ctrl_c():
    parent = subprocess.Popen(
        [sys.executable, "-c", FORKS], cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    wait_for("a group of its own", lambda: os.getpgid(child.pid) != os.getpgid(parent.pid))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_for("end of the child", lambda: not child.is_running())


def test_the_swarm_follows_the_sites_clock():
    check = (
        "import time; from trainer.swarm import clock; clock.follow_site(-40.0);"
        "import hivemind.dht.protocol as a, hivemind.averaging.matchmaking as b;"
        "import hivemind.utils.auth as c;"
        "print(*(round(time.time() - m.get_dht_time()) for m in (a, b, c)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["40", "40", "40"]


@pytest.mark.parametrize("jump_s", [3600.0, -28_800.0, 5.0])
def test_a16_a_clock_that_is_set_anew_meanwhile_moves_nothing(jump_s: float):
    check = (
        "import time; from trainer.swarm import clock; clock.follow_site(-40.0);"
        f"true = time.time; before = clock.now(); time.time = lambda: true() + {jump_s};"
        "print(round(clock.now() - before), round(true() - clock.now()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "40"]
