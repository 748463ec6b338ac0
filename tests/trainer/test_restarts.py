"""An agent whose process died begins anew, later each time, and not for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trainer.agent import restarts
from trainer.agent.wishes import Wishes
from trainer.wire import LeaveCause

ROOT = Path(__file__).resolve().parents[2]
WHY = "its averaging process was killed (SIGKILL, as when memory runs out)"


def test_each_try_waits_longer_and_after_the_last_it_stops_and_says_what_to_do():
    environment: dict[str, str] = {}
    now = 1_000_000.0
    assert [restarts.next_pause_s(environment, now + 60 * n) for n in range(5)] == [
        1.0,
        15.0,
        60.0,
        None,
        None,
    ]
    said = restarts.last_words(WHY)
    assert said.startswith(f"{WHY}, 4 times in 30 minutes. It does not start again by itself.")
    assert len(said) <= 300  # else the site's page would lose the end


def test_deaths_of_long_ago_and_of_an_agent_started_by_hand_do_not_count():
    environment: dict[str, str] = {}
    for number in range(10):
        assert restarts.next_pause_s(environment, 1e6 + number * restarts.WITHIN_S / 2) is not None
    assert restarts.next_pause_s({}, 1e6) == restarts.PAUSES_S[0]


def test_a_stop_during_the_pause_is_heard(tmp_path: Path):
    wishes = Wishes(tmp_path / "wish.json")
    wishes.stop(f"{WHY}; it starts again in 15 s", LeaveCause.RESTARTING)
    wishes.stop("It was stopped on this machine.")
    assert wishes.current().cause is LeaveCause.STOPPED


AGAIN = """
import os, sys, time
from trainer import commands as program
from trainer.agent import restarts
with open(sys.argv[1]) as kept:
    pause_s = restarts.next_pause_s(os.environ, time.time())
    print(os.getpid(), pause_s, len(os.listdir("/dev/fd")), flush=True)
    os.set_inheritable(kept.fileno(), True)
    if pause_s is not None:
        program._start_again(["--yes"])
"""


def test_the_new_agent_is_the_same_process_and_knows_how_often_but_holds_no_old_file(
    tmp_path: Path,
):
    script = tmp_path / "again.py"
    script.write_text(AGAIN)
    done = subprocess.run(
        [sys.executable, str(script), str(script)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [words[1] for words in lines] == ["1.0", "15.0", "60.0", "None"]
    assert len({words[0] for words in lines}) == 1
    assert len({words[2] for words in lines}) == 1
