"""Several processes of one device train as one would, and each holds a part of the state."""

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
from trainer.commands import main
from trainer.engine.group_learner import GroupLearner
from trainer.engine.job import Job
from trainer.engine.sharding import WAYS
from trainer.launcher.machine import SPLITS
from trainer.recipe import Choice

ROOT = Path(__file__).resolve().parents[2]


TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]


def run(folder: Path, family: str, groups: tuple[str, ...], starter: list[str]) -> list[dict]:
    words = [*starter, "-m", "tests.trainer.group_run", str(folder), family, *groups]
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def check(alone: dict, together: dict, size: int, split: str) -> None:
    """The same as one process, and of what is split not more than a share in any process."""
    assert together["losses"] == pytest.approx(alone["losses"], rel=1e-5)
    assert together["norms"] == pytest.approx(alone["norms"], rel=1e-3)
    assert together["fingerprint"] == pytest.approx(alone["fingerprint"], rel=1e-4, abs=1e-3)
    for mine, theirs in zip(together["state"], alone["state"], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-3, abs=1e-3)
    ((whole, _, whole_moments),) = alone["held"]
    assert len(together["held"]) == size
    for parameters, gradient, moments in together["held"]:
        share = 1.1 * whole / size
        assert moments < 1.1 * whole_moments / size
        if split == "optimizer":
            assert (parameters, gradient) == (whole, whole)
        elif split == "gradients":  # all parameters, and the part that the optimizer steps
            assert gradient < share and whole <= parameters < whole + share
        else:
            assert gradient < share and parameters < share


@pytest.mark.parametrize(
    ("family", "groups", "starter"),
    [
        pytest.param("causal", ("2:optimizer", "2:gradients"), [], marks=pytest.mark.soak),
        ("albert", ("2:optimizer", "2:parameters"), TORCHRUN),  # one after the other, as restarts
        pytest.param(
            "causal", ("3:optimizer", "2:parameters", "2:offload"), [], marks=pytest.mark.soak
        ),
        pytest.param("llama", ("2:optimizer", "2:parameters"), [], marks=pytest.mark.soak),  # LoRA
        pytest.param(
            "albert", ("2:optimizer", "3:gradients", "3:parameters"), [], marks=pytest.mark.soak
        ),
    ],
)
def test_a_group_learns_what_one_process_does_and_each_holds_its_share(
    tmp_path: Path, family: str, groups: tuple[str, ...], starter: list[str]
):
    """With shared layers (ALBERT) and tied word vectors (both); nothing divides evenly."""
    alone, *together = run(tmp_path, family, ("1:", *groups), starter)
    for group, done in zip(groups, together, strict=True):
        size, split = group.split(":")
        check(alone, done, int(size), split)


def test_what_the_launcher_offers_to_split_is_what_the_engine_can():
    assert set(SPLITS) == set(WAYS)
    assert SPLITS[0] == Job.__dataclass_fields__["split"].default


@pytest.mark.parametrize("given", ["1:parameters", "2:optimiser", "2:"])
def test_who_does_not_say_how_several_split_the_work_is_told_how(given: str, capsys):
    with pytest.raises(SystemExit):
        main(["run", "--site", "http://127.0.0.1:1", "--processes", given])
    assert f"{given} does not say how several processes split" in capsys.readouterr().err


@pytest.mark.parametrize("strategy", ["fedavg", "fednova", "diloco"])
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
    _, alive = psutil.wait_procs([other], timeout=60)
    assert alive == []


def test_a_process_that_was_killed_is_named_instead_of_waited_for(waiting):
    process, other = waiting
    os.kill(other.pid, signal.SIGKILL)
    out, _ = process.communicate("\n", timeout=60)
    assert out.startswith("a process of this device's group was killed (SIGKILL")


DIES_EARLY = """
import os, signal, sys, torch
from pathlib import Path
import psutil
from tests.trainer.group_run import make
from trainer.engine import following
from trainer.swarm.orphans import ProcessEnded
torch.set_num_threads(1)
folder, place = Path(sys.argv[1]), sys.argv[2]

def die(*_):
    try:
        (folder / "dead").touch(exist_ok=False)
    except FileExistsError:
        return build(*_) if _ else None
    os.kill(os.getpid(), signal.SIGKILL)

build = following.build
if place == "fork":
    os.register_at_fork(after_in_child=die)
else:
    following.build = die
try:
    make(3, folder)
except ProcessEnded as error:
    print(error)
print([child.pid for child in psutil.Process().children()])
"""


@pytest.mark.parametrize("place", ["fork", "build"])
def test_one_that_is_killed_before_or_just_after_all_have_met_is_named(tmp_path: Path, place: str):
    """The first of two others; and the second, which waits with us, is not left behind."""
    done = subprocess.run(
        [sys.executable, "-c", DIES_EARLY, str(tmp_path), place],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    words = "a process of this device's group was killed (SIGKILL, as when memory runs out)"
    assert done.stdout.splitlines() == [words, "[]"], done.stderr


FULL = """
import resource, sys, torch
from pathlib import Path
from tests.trainer.group_run import make
from tests.trainer.models import make_batch
from trainer.device import memory
torch.set_num_threads(1)
learner = make(2, Path(sys.argv[1]), split="parameters")
learner.learn(make_batch())
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 16 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for act in (lambda: learner.learn(make_batch(rows=2048)), learner.begin):
    try:
        act()
    except (RuntimeError, MemoryError) as error:
        print(memory.ran_out(error), error)
learner.close()
print("closed")
"""


def test_memory_that_ran_out_in_a_pass_of_all_ends_the_group_and_says_so(tmp_path: Path):
    """First the loop hears of it, so that the next start takes fewer; then nothing can go on."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    words = "memory ran out while the processes of this device's group worked"
    assert done.stdout.splitlines() == [f"True {words}", f"False {words}", "closed"], done.stderr
