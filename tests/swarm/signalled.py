"""A member that heeds signals as an agent does: `python -m tests.swarm.signalled FOLDER`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from tests.swarm.member import FileOutbox, job_in
from trainer.agent.stopping import heed_signals
from trainer.agent.view import PlainView
from trainer.agent.wishes import Wishes
from trainer.engine.peer import take_part


def main(folder: Path) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    wishes, outbox = Wishes(folder / "own.json"), FileOutbox(folder / "said.jsonl")
    heed_signals(wishes, PlainView("", None))
    outbox.left(take_part(job_in(folder), outbox, wishes).value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
