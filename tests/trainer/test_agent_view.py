"""What the person at the machine reads, and what happens when nobody reads it any more."""

from __future__ import annotations

import io
import signal
import subprocess
import sys

import pytest

from tests.trainer.test_agent_parts import ROOT
from trainer.agent.view import WORDS, PlainView
from trainer.engine.ending import REASONS
from trainer.wire import Activity, Progress, Receipt, VerdictSummary

AGENT = """
import sys, time
from pathlib import Path
from trainer.agent.stopping import heed_signals
from trainer.agent.view import PlainView
from trainer.agent.wishes import Wishes
from trainer.wire import Wish

view = PlainView("Potluck", None)
wishes = Wishes(Path(sys.argv[1]) / "wish.json")
heed_signals(wishes, view)
view.open()
deadline = time.monotonic() + 60
while wishes.current().wish is not Wish.STOP and time.monotonic() < deadline:
    time.sleep(0.02)
view.say("Everything is reported.")
sys.exit(0 if wishes.current().wish is Wish.STOP else 7)
"""


def test_ctrl_c_is_a_clean_end_also_when_tee_is_gone_already(tmp_path):
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path)], cwd=ROOT, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert "Potluck" in agent.stdout.readline()
    agent.stdout.close()
    agent.send_signal(signal.SIGINT)
    trouble = agent.stderr.read()
    agent.stderr.close()
    assert agent.wait(60) == 0, trouble
    assert trouble == ""


@pytest.mark.parametrize("activity", REASONS)
def test_a_reason_does_not_repeat_the_activity(activity):
    out = io.StringIO()
    PlainView("Potluck", None, out).show_progress(
        Progress(round=1, activity=activity, reason=REASONS[activity])
    )
    words = out.getvalue().splitlines()[0]
    assert words.count(WORDS[activity]) == 1


def test_what_the_link_can_and_what_it_carries_for_all_is_on_the_screen():
    out = io.StringIO()
    view = PlainView("Potluck", None, out)
    figures = {"round": 1, "activity": Activity.TRAINING}
    view.show_progress(Progress(**figures, link_mbit_s=52.349, share=0.384))
    assert "link: 52.3 Mbit/s measured, carries 38% of the averaging for all" in out.getvalue()
    view._shown_at = -1e9
    view.show_progress(Progress(**figures, link_mbit_s=3.0, share=0.0))
    assert "link: 3 Mbit/s measured, carries no averaging for all" in out.getvalue()
    verdict = VerdictSummary(round=1, outcome="clean", members=2, samples=9, tokens=90)
    receipt = {"round": 1, "samples": 4, "tokens": 40, "accepted": True, "verdict": verdict}
    view.show_receipt(Receipt(**receipt, share=0.25))
    assert "it averaged 25% of the model for all" in out.getvalue()
    view.show_receipt(Receipt(**receipt))
    assert out.getvalue().count("of the model for all") == 1


def test_lines_tell_which_part_of_the_text_is_read():
    out = io.StringIO()
    view = PlainView("Potluck", None, out)
    view.reading = lambda: "part 3 of 64 of the text, 40% read"
    view.show_progress(Progress(round=1, activity="training", samples_per_s=2.0))
    assert "reading: part 3 of 64 of the text, 40% read" in out.getvalue()
