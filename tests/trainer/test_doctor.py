"""What is found on a machine before it trains, and what is done about it at once."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import NamedTuple

import pytest

from trainer.device import doctor

MIB = 2**20


class DiskUsage(NamedTuple):
    total: int
    used: int
    free: int


def test_the_limit_of_open_files_is_raised_for_this_process_and_its_children_and_never_lowered():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ask = [sys.executable, "-c", "import resource; print(resource.getrlimit(7)[0])"]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        assert doctor.check_open_files().state is doctor.State.GOOD
        assert int(subprocess.check_output(ask)) == doctor.OPEN_FILES
        if hard > doctor.OPEN_FILES or hard == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_NOFILE, (doctor.OPEN_FILES + 1, hard))
            doctor.check_open_files()
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == doctor.OPEN_FILES + 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("millions", [0, 60])
def test_shared_memory_that_holds_the_model_is_good(monkeypatch, tmp_path, millions):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: DiskUsage(0, 0, 512 * MIB))
    found = doctor.check_shared_memory(millions * 10**6, tmp_path)
    assert found.state is doctor.State.GOOD


def test_shared_memory_too_small_for_the_model_is_found_before_training(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: DiskUsage(0, 0, 512 * MIB))
    finding = doctor.check_shared_memory(100_000_000, tmp_path)
    assert finding.state is doctor.State.BAD
    assert "512 MiB free; averaging needs 763 MiB" in finding.words
    assert finding.fix == "In a container, start it with --shm-size=2g."
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda place: DiskUsage(0, 0, 63 * MIB))
    assert doctor.check_shared_memory(place=tmp_path).state is doctor.State.BAD
