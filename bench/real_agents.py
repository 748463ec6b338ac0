"""Six agents of a real site for ten minutes, one of which is killed every 20 s and comes back 20 s
later: the half of `chaos` without a simulator."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.swarm.site import Site
from tests.waiting import wait_for

NAMES = ("anna", "boris", "clara", "deniz", "elena", "faruk")
EVERY_S = 20.0  # from kill to kill, and from kill to return: at most two are away
CALM_S, DISTURBED_S = 300.0, 600.0
LONGEST_S = 300.0


class Agents:
    """All six, on a site of their own, with the demo's collaboration."""

    def __init__(self, folder: Path) -> None:
        self.site = Site(folder)
        self.site.start("--no-volunteer")
        self.running = {name: self.site.agent(name) for name in NAMES}
        self.num_kills = 0
        self.wait_for_all()

    def wait_for_all(self) -> None:
        """Until rounds have six members again: nobody is stuck."""
        last = self.site.last_round()
        wait_for("round of all six", lambda: self.members(after=last) == len(NAMES), LONGEST_S)

    def members(self, after: int) -> int:
        """The most members of a round after this one."""
        found = self.site.rows(
            f"select max(members) from live_roundrecord where from_coordinator and round > {after}"
        )
        return int(found[0][0] or 0)

    def disturb(self, seconds: float) -> None:
        chance = random.Random(0)
        away = ""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            victim = chance.choice([name for name in NAMES if name != away])
            self.running[victim].kill()  # its main process: the others have to notice
            self.running[victim].wait()
            self.num_kills += 1
            if away:
                self.running[away] = self.site.launch(away)
            away = victim
            time.sleep(EVERY_S)
        self.running[away] = self.site.launch(away)
        self.wait_for_all()

    def held_out(self) -> dict[int, float]:
        """Losses by round."""
        return dict(
            self.site.rows(
                "select round, held_out_loss from live_roundrecord where held_out_loss is not null"
            )
        )

    def close(self) -> None:
        """Agents say good-bye, so that everything they have to report has arrived."""
        for agent in self.running.values():
            agent.terminate()
        for agent in self.running.values():
            agent.wait(60)
        wait_for("every report", lambda: not self.unsent(), LONGEST_S)
        self.site.end()

    def unsent(self) -> list[Path]:
        return [path for path in self.site.folder.rglob("spool/*.jsonl") if path.stat().st_size]

    def sums(self) -> dict[str, int]:
        """Samples; read them after `close`."""
        questions = {
            "in_the_model": "select sum(samples) from live_roundrecord where from_coordinator "
            "and outcome in ('clean', 'alone')",
            "receipts": "select sum(samples) from credit_receipt where accepted",
            "credited": "select sum(samples) from credit_hourlycredit",
        }
        return {name: int(self.site.rows(sql)[0][0] or 0) for name, sql in questions.items()}


def undisturbed() -> dict[int, float]:
    with tempfile.TemporaryDirectory() as folder:
        agents = Agents(Path(folder))
        try:
            time.sleep(CALM_S)
            return agents.held_out()
        finally:
            agents.close()


def disturbed() -> tuple[dict[int, float], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        agents = Agents(Path(folder))
        try:
            agents.disturb(DISTURBED_S)
            losses = agents.held_out()
        finally:
            agents.close()
        return losses, {**agents.sums(), "kills": agents.num_kills, "rounds": max(losses)}
