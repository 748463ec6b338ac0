"""`make run` from a clean clone with a warm package cache: seconds to the ready line, again at the
second start, and from ready to the first live loss point."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ports import free_port

FIRST_GOAL_S, SECOND_GOAL_S, POINT_GOAL_S = 90.0, 10.0, 30.0
LONGEST_S = 600.0
ROOT = Path(__file__).resolve().parent.parent


class Start:
    """One `make run` in `folder`; `ready_s` is known once its ready line is printed."""

    def __init__(self, folder: Path, port: int, swarm_port: int) -> None:
        self.site = f"http://127.0.0.1:{port}"
        env = os.environ | {
            "HTTP_PORT": str(port),
            "SITE_URL": self.site,
            "SWARM_FIRST_PORT": str(swarm_port),
        }
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            ["make", "--silent", "run"],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ready_s(self) -> float:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "Ready after" in line:
                return time.monotonic() - self._began
        raise RuntimeError("make run ended before it was ready")

    def until(self, what: Callable[[dict[str, Any]], bool]) -> float:
        """Seconds until the live snapshot of the demo says `what`."""
        began = time.monotonic()
        while time.monotonic() - began < LONGEST_S:
            with urllib.request.urlopen(f"{self.site}/api/v1/collaborations/demo") as answer:
                if what(json.load(answer)):
                    return time.monotonic() - began
            time.sleep(0.25)
        raise TimeoutError(f"not within {LONGEST_S:.0f} s")

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.communicate(timeout=60)


def main() -> dict[str, Any]:
    ports = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="potluck-startup-") as scratch:
        folder = Path(scratch) / "potluck"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        start = Start(folder, *ports)
        try:
            first_s = start.ready_s()
            point_s = start.until(lambda live: bool((live["last_round"] or {}).get("loss")))
            credit_s = start.until(lambda live: live["effort"]["samples"] > 0)
        finally:
            start.stop()
        again = Start(folder, *ports)
        try:
            second_s = again.ready_s()
        finally:
            again.stop()
    met = first_s <= FIRST_GOAL_S and second_s <= SECOND_GOAL_S and point_s <= POINT_GOAL_S
    return {
        "value": round(first_s, 1),
        "unit": "s to the ready line of the first start",
        "goal": f"<= {FIRST_GOAL_S}; second <= {SECOND_GOAL_S}; loss point <= {POINT_GOAL_S}",
        "met": met,
        "compared_with": {
            "second_start_s": round(second_s, 1),
            "ready_to_first_loss_point_s": round(point_s, 1),
            "ready_to_first_credit_s": round(point_s + credit_s, 1),
        },
    }
