"""What a container lets a device have, by both versions of control groups."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from trainer.device import memory
from trainer.launcher import container, machine
from trainer.launcher.container import Limit, memory_limits


def make_group(folder: Path, limit: str, used: int, inactive: int, *, version: int) -> None:
    names = container.VERSION_1 if version == 1 else container.VERSION_2
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names.limit).write_text(f"{limit}\n")
    (folder / names.used).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"cache 7\n{names.droppable} {inactive}\n")


def test_version_2_knows_the_groups_own_limit_and_those_around_it(tmp_path):
    make_group(tmp_path / "user/agent", "max", 10, 0, version=2)
    make_group(tmp_path / "user", "1000", 900, 50, version=2)
    own = tmp_path / "own"
    own.write_text("0::/user/agent\n")
    assert memory_limits(own, tmp_path) == [Limit(1000, 850)]
    assert Limit(1000, 850).left_bytes == 150


def test_version_1_is_asked_where_it_has_the_memory(tmp_path):
    make_group(tmp_path / "memory/agent", "2000", 2500, 100, version=1)
    own = tmp_path / "own"
    own.write_text("9:name=systemd:/\n4:cpu,cpuacct:/elsewhere\n3:memory:/agent\n0::/\n")
    assert memory_limits(own, tmp_path) == [Limit(2000, 2400)]
    assert Limit(2000, 2400).left_bytes == 0


def test_a_container_that_sees_its_own_group_as_the_outermost_has_its_limit(tmp_path):
    make_group(tmp_path / "memory", "3000", 0, 0, version=1)
    own = tmp_path / "own"
    own.write_text("4:memory:/docker/0123456789ab\n")
    assert memory_limits(own, tmp_path) == [Limit(3000, 0)]


def test_without_control_groups_there_is_no_limit(tmp_path):
    assert memory_limits(tmp_path / "none", tmp_path) == []


def test_a_real_group_bounds_what_the_device_says_it_has():
    """A child in a group of 300 MB knows it (needs the right to make one)."""
    folder = container.GROUPS / "memory"
    names = container.VERSION_1 if folder.is_dir() else container.VERSION_2
    group = (folder if folder.is_dir() else container.GROUPS) / f"potluck-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / names.limit).write_text("300000000")
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        pytest.skip(f"no control groups can be made here: {error}")
    read_end, write_end = os.pipe()
    if not (child := os.fork()):
        (group / "cgroup.procs").write_text(str(os.getpid()))
        told = f"{machine.memory_bytes()} {memory.available_bytes()}"
        os.write(write_end, told.encode())
        os._exit(0)
    os.waitpid(child, 0)
    group.rmdir()
    has, left = (int(word) for word in os.read(read_end, 100).split())
    os.close(read_end)
    os.close(write_end)
    assert 299_000_000 < has <= 300_000_000
    assert 0 < left <= has
