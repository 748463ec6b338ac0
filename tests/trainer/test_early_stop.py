"""Ctrl-C before an agent takes part."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_ctrl_c_while_the_site_is_asked_for_the_first_time_is_one_line(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        site = f"http://127.0.0.1:{silent.getsockname()[1]}"
        agent = subprocess.Popen(
            [sys.executable, "-m", "trainer", "run", "--site", site, "--home", str(tmp_path)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        held, _ = silent.accept()
        with held:
            agent.send_signal(signal.SIGINT)
            _, said = agent.communicate(timeout=60)
    assert (agent.returncode, said) == (130, "Stopped before it took part.\n")
