"""The program as a person starts and stops it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_ctrl_c_while_the_program_loads_stops_it_without_a_traceback(tmp_path):
    words = ["-m", "trainer", "run", "--site", "http://127.0.0.1:9", "--home", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    loading = next(line for line in process.stderr if "trainer." in line)
    assert "import time" in loading
    process.send_signal(signal.SIGINT)
    said = process.stderr.read()
    assert process.wait(60) == 130
    assert "Stopped before it took part." in said and "Traceback" not in said


def test_an_agent_lets_others_go_first_and_leaves_somebodys_terminal_alone():
    program = "import os; from trainer import commands; commands._give_way(); print(os.nice(0))"
    program += "; group = commands.OWN_SESSION; print(group.exists() and group.read_text())"
    words = [sys.executable, "-c", program]
    here = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    alone = subprocess.run(
        words, cwd=ROOT, check=True, capture_output=True, text=True, start_new_session=True
    ).stdout
    assert here.splitlines()[0] == alone.splitlines()[0] == "10"
    if (group := alone.splitlines()[1]) != "False":
        assert group.endswith("nice 10") and not here.splitlines()[1].endswith("nice 10")
