"""Lines of a program that shares its terminal with others."""

from __future__ import annotations

import io

from trainer.agent.view import PlainView
from trainer.wire import Outcome, Receipt, VerdictSummary


def test_the_lines_of_a_coordinator_name_its_collaboration_and_one_peer_is_one_peer():
    out = io.StringIO()
    view = PlainView("Coordinator", None, out, label="[demo] ")
    view.open()
    verdict = VerdictSummary(round=3, outcome=Outcome.CLEAN, members=1, samples=64, tokens=640)
    view.show_receipt(Receipt(round=3, samples=64, tokens=640, accepted=True, verdict=verdict))
    lines = out.getvalue().splitlines()
    assert all(line.split(" ", 1)[1].startswith("[demo] ") for line in lines)
    assert "clean, 1 peer, 64 samples" in lines[-1]
