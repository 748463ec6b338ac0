"""The pause key, at a real terminal: it works, and the terminal is given back however it ends."""

from __future__ import annotations

import json
import signal

import psutil
import pytest

from tests.trainer.terminal import Terminal
from tests.waiting import wait_for
from trainer.agent.wishes import Wishes
from trainer.wire import Wish

AGENT = """
import sys, threading, time
from pathlib import Path
from trainer.agent.stopping import heed_signals
from trainer.agent.view import PlainView, RichView
from trainer.agent.wishes import Wishes
from trainer.wire import Wish

kind, folder = sys.argv[1], Path(sys.argv[2])
view = (PlainView if kind == "plain" else RichView)("Potluck", folder / "log")
wishes = Wishes(folder / "wish.json", lambda control: view.say(control.reason or "Running."))
view.open()
try:
    heed_signals(wishes, view)
    view.heed(wishes)
    view.say("It has begun.")
    deadline = time.monotonic() + 100
    while wishes.current().wish is not Wish.STOP or kind == "hangs":
        assert time.monotonic() < deadline
        if kind == "crashes" and wishes.current().wish is Wish.PAUSE:
            raise RuntimeError("it broke")
        time.sleep(0.02)
finally:
    view.close()
print("The last line.")
"""
SHELL = """
import signal, subprocess, sys
agent = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], process_group=0)
print("In the background.", flush=True)
print("The shell reads", sys.stdin.readline(), flush=True)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(0, agent.pid)
sys.exit(agent.wait())
"""


@pytest.fixture
def terminal():
    made = Terminal()
    yield made
    made.switch_off()


def wish_on_disk(folder):
    return json.loads((folder / "wish.json").read_text())["wish"]


def test_p_pauses_and_goes_on_and_ctrl_c_still_stops(terminal, tmp_path):
    terminal.start(AGENT, "panel", str(tmp_path))
    terminal.until("p pauses.")
    wait_for("keys one by one", lambda: not terminal.takes_lines)
    terminal.type("xp")
    terminal.until("Its owner paused it.")
    terminal.until("You paused this device: p goes on.")
    assert wish_on_disk(tmp_path) == "pause"
    terminal.type("P")
    terminal.until("Running.")
    terminal.until("p pauses.")
    assert wish_on_disk(tmp_path) == "run"
    terminal.type("p")
    terminal.until("Its owner paused it.")
    terminal.type("\x03")
    assert terminal.end() == 0, terminal.shown
    assert "Stopping: what was trained" in terminal.shown and "The last line." in terminal.shown
    assert terminal.modes == terminal.found
    assert wish_on_disk(tmp_path) == "pause"  # the next start waits as well, and p ends that


ENDS = {"term": ("panel", signal.SIGTERM, 0), "hup": ("panel", signal.SIGHUP, 0)}
ENDS |= {"crash": ("crashes", None, 1), "hard": ("hangs", None, 130)}


@pytest.mark.parametrize(("kind", "sent", "code"), ENDS.values(), ids=ENDS)
def test_the_terminal_is_given_back_however_the_agent_ends(terminal, tmp_path, kind, sent, code):
    agent = terminal.start(AGENT, kind, str(tmp_path))
    terminal.until("p pauses.")
    wait_for("keys one by one", lambda: not terminal.takes_lines)
    if sent:
        agent.send_signal(sent)
    elif kind == "crashes":
        terminal.type("p")
    else:
        terminal.type("\x03")
        terminal.until("Again to quit at once")
        terminal.type("\x03")
    assert terminal.end() == code, terminal.shown
    assert terminal.modes == terminal.found
    assert terminal.shown.rindex("\x1b[?25h") > terminal.shown.rindex("\x1b[?25l")  # the cursor


def test_in_the_background_the_terminal_is_the_shells(terminal, tmp_path):
    shell = terminal.start(SHELL, AGENT, "panel", str(tmp_path))
    terminal.until("It has begun.")
    (agent,) = psutil.Process(shell.pid).children()
    terminal.type("ppp\n")
    terminal.until("The shell reads ppp")
    wait_for("keys one by one", lambda: terminal.look() and not terminal.takes_lines)
    assert agent.status() != psutil.STATUS_STOPPED
    assert not (tmp_path / "wish.json").exists()
    terminal.type("p")
    terminal.until("You paused this device: p goes on.")
    terminal.type("\x03")
    assert terminal.end() == 0, terminal.shown
    assert terminal.modes == terminal.found


def test_lines_for_logs_take_no_keys_and_end_a_pause_of_an_earlier_session(terminal, tmp_path):
    Wishes(tmp_path / "wish.json").volunteer(Wish.PAUSE)
    terminal.start(AGENT, "plain", str(tmp_path))
    terminal.until("no key could end that here, so it goes on")
    terminal.until("It has begun.")
    assert terminal.modes == terminal.found and wish_on_disk(tmp_path) == "run"
    terminal.type("p\x03")
    assert terminal.end() == 0, terminal.shown
    assert wish_on_disk(tmp_path) == "run" and "p pauses" not in terminal.shown
    assert terminal.modes == terminal.found


def test_a_slip_while_it_stops_pauses_nothing(tmp_path):
    wishes = Wishes(tmp_path / "wish.json")
    wishes.stop("Ctrl-C")
    wishes.toggle_pause()
    assert not wishes.is_paused_here and not (tmp_path / "wish.json").exists()
