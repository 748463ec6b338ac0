"""What ends the node's process says so, and leaves no traceback behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What it reads of a process that has just died ends too early.
ASKED_BY_THE_DEAD = """
import multiprocessing
from trainer.swarm.network import Network

def cut_off():
    raise EOFError

class Question:
    def __reduce__(self):
        return cut_off, ()

multiprocessing.set_start_method("fork", force=True)
network = Network(start=True, host_maddrs=["/ip4/127.0.0.1/tcp/0"])
network._outer_pipe.send(Question())
network.join(60)
print("code", network.exitcode)
"""
STOPPED_WHILE_LOADING = """
from trainer.agent import loading
loading.ENGINE = "torch.is.being.taken.away"
loading._load()
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", program]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.swarm
def test_a_question_of_a_process_that_died_ends_the_node_in_words():
    done = run(ASKED_BY_THE_DEAD)
    assert "code 0" in done.stdout
    assert "died while it was asking" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_cannot_be_loaded_ahead_is_left_to_who_needs_it():
    assert "Traceback" not in run(STOPPED_WHILE_LOADING).stderr
