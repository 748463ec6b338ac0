"""Reports survive kills, torn writes and full disks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_for
from trainer.agent.spool import Spool, earlier_sessions
from trainer.wire import HeldOut

ROOT = Path(__file__).resolve().parents[2]
SESSION, OTHER = "a" * 32, "b" * 32


def body(number: int) -> HeldOut:
    return HeldOut(round=number, loss=1.0, tokens=8)


def rounds(spool: Spool) -> list[int]:
    return [report.body.round for report in spool.after(0, 10_000)]


def test_what_is_acknowledged_is_forgotten_and_the_rest_is_there_again(tmp_path):
    spool = Spool(tmp_path, SESSION)
    for number in range(5):
        spool.add(body(number))
    spool.acknowledge(2)
    assert rounds(spool) == [2, 3, 4]
    again = Spool(tmp_path, SESSION)
    again.acknowledge(2)  # as Welcome says it
    assert rounds(again) == [2, 3, 4]
    assert again.add(body(9)).seq == 6


def test_a_file_that_is_all_acknowledged_takes_no_space_and_numbers_go_on(tmp_path):
    spool = Spool(tmp_path, SESSION)
    spool.add(body(0))
    spool.acknowledge(1)
    assert spool.path.stat().st_size == 0
    assert spool.add(body(1)).seq == 2
    assert rounds(Spool(tmp_path, SESSION)) == [1]


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a15_a_torn_end_is_cut_off_and_the_rest_kept(tmp_path, cut):
    spool = Spool(tmp_path, SESSION)
    for number in range(3):
        spool.add(body(number))
    os.truncate(spool.path, spool.path.stat().st_size - cut)
    again = Spool(tmp_path, SESSION)
    assert rounds(again) == [0, 1]
    again.add(body(7))
    assert rounds(Spool(tmp_path, SESSION)) == [0, 1, 7]


def test_a15_an_empty_or_senseless_file_loses_nothing_else(tmp_path):
    (tmp_path / f"{SESSION}.jsonl").write_bytes(b"")
    (tmp_path / f"{OTHER}.jsonl").write_bytes(b"\0" * 500)
    assert earlier_sessions(tmp_path, "c" * 32) == []
    assert Spool(tmp_path, SESSION).add(body(1)).seq == 1


WRITER = """
import sys
from pathlib import Path
from trainer.agent.spool import Spool
from trainer.wire import HeldOut
spool = Spool(Path(sys.argv[1]), sys.argv[2])
for number in range(100000):
    spool.add(HeldOut(round=number, loss=1.0, tokens=8))
    print(number, flush=True)
"""


def test_kill_9_in_the_middle_of_writing_loses_no_report_that_was_confirmed(tmp_path):
    out = tmp_path / "out"
    with out.open("wb") as file:
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, tmp_path, SESSION], cwd=ROOT, stdout=file
        )
    wait_for("some reports", lambda: out.read_bytes().count(b"\n") > 50)
    writer.send_signal(signal.SIGKILL)
    writer.wait(10)
    confirmed = int(out.read_bytes().splitlines()[-1])
    found = rounds(Spool(tmp_path, SESSION))
    assert found[: confirmed + 1] == list(range(confirmed + 1))
    assert len(found) <= confirmed + 2


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting a small file system is not permitted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a15_a_full_disk_keeps_reports_in_memory_says_so_and_recovers(small_disk):
    ballast = small_disk / "ballast"
    spool = Spool(small_disk, SESSION)
    spool.add(body(0))
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 512)
        except OSError:
            pass
    for number in range(1, 60):
        spool.add(body(number))
    assert "disk is full" in spool.trouble
    assert rounds(spool) == list(range(60))
    ballast.unlink()
    spool.add(body(60))
    assert spool.trouble == ""
    assert rounds(Spool(small_disk, SESSION)) == list(range(61))


def test_a_site_that_lost_reports_gets_them_as_a_new_session_without_a_gap(tmp_path):
    spool = Spool(tmp_path, SESSION)
    for number in range(4):
        spool.add(body(number))
    spool.acknowledge(3)
    assert spool.has_gap_after(1)
    assert not spool.has_gap_after(3)
    spool.move_to(OTHER)
    assert [report.seq for report in Spool(tmp_path, OTHER).after(0)] == [1]
    assert not (tmp_path / f"{SESSION}.jsonl").exists()
