"""Time until a swarm of 1, 2, 4 and 8 peers, each on a quarter of a core, reaches a loss; and of
one that three others join half-way."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.swarm.swarm import Member, Swarm
from tests.throttle import Throttle
from tests.waiting import wait_for
from trainer.wire import Wish

CORES = 0.25
TARGET_SAMPLES = 4096
TARGET_LOSS = 4.6  # about the eighth round; it begins at 5.8
GOAL = 0.85
SIZES = (1, 2, 4, 8)
LONGEST_S = 900.0


class Trial:
    """Peers wait, paused, until all are ready: their start is not measured."""

    def __init__(self, folder: Path) -> None:
        self.swarm = Swarm(folder, target_samples=TARGET_SAMPLES, deadline_s=300)
        self.throttles: list[Throttle] = []
        self.coordinator = self.swarm.open()

    def ready(self, number: int) -> list[Member]:
        members = []
        for _ in range(number):
            name = f"peer{len(self.throttles)}"
            throttle = Throttle(name, CORES)
            self.throttles.append(throttle)
            member = self.swarm.add(name)
            assert member.process is not None
            throttle.take(member.process.pid)
            member.wish(Wish.PAUSE, "until all are ready")
            members.append(member)
        for member in members:
            wait_for("ready peer", lambda m=member: m.activity() == "paused", LONGEST_S)
        return members

    def losses(self) -> list[tuple[float, float]]:
        """(when, training loss) of every round."""
        return [
            (one["at"], one["body"]["verdict"]["loss"]) for one in self.coordinator.said_at("round")
        ]

    def reach(self, loss: float) -> float:
        """When a round had this loss, in seconds since the epoch."""
        wait_for("target loss", lambda: any(one <= loss for _, one in self.losses()), LONGEST_S)
        return next(at for at, one in self.losses() if one <= loss)

    def close(self) -> None:
        self.swarm.close()
        for throttle in self.throttles:
            throttle.remove()


def run(members: list[Member]) -> float:
    """Lets them train; when that was."""
    for member in members:
        member.wish(Wish.RUN)
    began: float = (members[0].folder / "wish.json").stat().st_mtime
    return began


def seconds_to_loss(number: int, joining_after_s: float = 0.0) -> float:
    """With three more that join after so many seconds, if that is not 0."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder))
        try:
            first = trial.ready(number)
            later = trial.ready(3) if joining_after_s else []
            began = run(first)
            if later:
                wait_for("half-way", lambda: time.time() >= began + joining_after_s, LONGEST_S)
                run(later)
            return trial.reach(TARGET_LOSS) - began
        finally:
            trial.close()


def main() -> dict[str, Any]:
    took = {}
    for number in SIZES:
        took[number] = seconds_to_loss(number)
        print(f"{number} peers: {took[number]:.0f} s", flush=True)
    joined = seconds_to_loss(1, joining_after_s=took[1] / 2)
    efficiency = {number: took[1] / (number * took[number]) for number in SIZES}
    sooner = sorted(took.values(), reverse=True) == [took[number] for number in SIZES]
    return {
        "value": round(efficiency[4], 3),
        "unit": "efficiency of 4 peers: time of 1 over 4 times the time of 4",
        "goal": f">= {GOAL}; more peers sooner, and joining half-way sooner than alone",
        "met": efficiency[4] >= GOAL and sooner and joined < took[1],
        "compared_with": {
            "seconds": {str(number): round(value, 1) for number, value in took.items()},
            "efficiency": {str(number): round(value, 3) for number, value in efficiency.items()},
            "three_join_half_way": round(joined, 1),
        },
    }
