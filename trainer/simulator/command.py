"""`python -m trainer simulate`: a line for each round, then the figures as one JSON document."""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
from pathlib import Path

import torch

from trainer.simulator.ledger import Attempt
from trainer.simulator.options import read_plan
from trainer.simulator.run import Rehearsal

HEAD = f"{'round':>6} {'outcome':<8} {'members':>7} {'samples':>8} {'loss':>9} {'seconds':>9}"


def simulate(given: argparse.Namespace) -> int:
    """0 when the rounds asked for were reached. Raises Unusable on words that make no sense."""
    torch.set_num_threads(1)  # many tiny models; and sums in one fixed order
    logging.getLogger("trainer").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
        plan = read_plan(given, Path(folder))
        print(HEAD, flush=True)
        figures = Rehearsal(plan, lambda attempt: print(_line(attempt), flush=True)).run()
    print(json.dumps(figures), flush=True)
    return 0 if figures["reached"] else 1


def _line(attempt: Attempt) -> str:
    loss = "" if attempt.loss is None else f"{attempt.loss:.4f}"
    lost = f"  lost: {', '.join(attempt.lost)}" if attempt.lost else ""
    return (
        f"{attempt.round:>6} {attempt.outcome:<8} {attempt.members:>7} {attempt.samples:>8} "
        f"{loss:>9} {attempt.at_s:>9.1f}{lost}"
    )
