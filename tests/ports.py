"""A TCP port for a server that a test, a benchmark or the screenshots start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Free a moment ago, on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
