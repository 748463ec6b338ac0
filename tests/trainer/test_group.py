"""Several processes of one device train as one would, and each holds a part of the moments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.trainer.models import make_recipe
from trainer.engine.group_learner import GroupLearner
from trainer.recipe import Choice

ROOT = Path(__file__).resolve().parents[2]


def run(size: int, folder: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "tests.trainer.group_run", str(size), str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict:
    return run(1, tmp_path_factory.mktemp("alone"))


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.soak)])
def test_a_group_learns_what_one_process_does_and_each_keeps_its_share_of_the_moments(
    alone: dict, tmp_path: Path, size: int
):
    together = run(size, tmp_path)
    assert together["losses"] == pytest.approx(alone["losses"], rel=1e-5)
    assert together["fingerprint"] == pytest.approx(alone["fingerprint"], rel=1e-4, abs=1e-3)
    for mine, theirs in zip(together["state"], alone["state"], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-3, abs=1e-3)
    assert together["moment_bytes"] < 1.1 * alone["moment_bytes"] / size
    assert len(together["own_bytes"]) == size
    assert max(together["own_bytes"]) < alone["own_bytes"][0]


@pytest.mark.parametrize("strategy", ["fedavg", "diloco"])
def test_strategies_with_local_steps_are_refused_in_words(tmp_path: Path, strategy: str):
    recipe = make_recipe(strategy=Choice(name=strategy))
    with pytest.raises(ValueError, match="start this device without --processes"):
        GroupLearner(recipe, 0, 2, tmp_path)


WAITS = """
import sys, torch
from pathlib import Path
from tests.trainer.group_run import make
from tests.trainer.models import make_batch
from trainer.swarm.orphans import ProcessEnded
torch.set_num_threads(1)
learner = make(2, Path(sys.argv[1]))
print("ready", flush=True)
input()
try:
    learner.learn(make_batch())
except ProcessEnded as error:
    print(error, flush=True)
"""


@pytest.fixture
def waiting(tmp_path: Path):
    """A group that has begun, and its process that is not the first."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    (other,) = psutil.Process(process.pid).children()
    yield process, other
    process.kill()
    process.wait()


@pytest.mark.soak
def test_the_others_end_when_the_first_is_killed(waiting):
    process, other = waiting
    process.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs([other], timeout=20)
    assert alive == []


def test_a_process_that_was_killed_is_named_instead_of_waited_for(waiting):
    process, other = waiting
    os.kill(other.pid, signal.SIGKILL)
    out, _ = process.communicate("\n", timeout=60)
    assert out.startswith("a process of this device's group was killed (SIGKILL")
