"""The programs of the embedded site, with the flags that were measured to matter."""

from __future__ import annotations

import sys
from pathlib import Path

from django.conf import settings

from webapp.ops import volunteer as demo_volunteer
from webapp.ops.embedded import valkey_command
from webapp.ops.probes import answers_http, answers_ping
from webapp.ops.program import Program

MANAGE = settings.BASE_DIR / "manage.py"


def log(name: str) -> Path:
    return settings.DATA_DIR / "logs" / f"{name}.log"


def valkey() -> Program:
    return Program(
        "valkey",
        valkey_command(settings.VALKEY_SOCKET, settings.DATA_DIR / "valkey"),
        log=log("valkey"),
        ready=answers_ping(settings.VALKEY_SOCKET),
    )


def web() -> Program:
    """Without a graceful timeout, one viewer that stopped reading would block the end for ever.

    Compressing websocket messages would double the memory per viewer.
    """
    flags = (
        f"--host {settings.HTTP_HOST} --port {settings.HTTP_PORT} --lifespan off "
        "--timeout-graceful-shutdown 4 --ws-per-message-deflate false --ws-max-size 131072 "
        "--no-access-log --log-level warning"
    )
    wildcard = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
    host = wildcard.get(settings.HTTP_HOST, settings.HTTP_HOST)
    return Program(
        "web",
        [sys.executable, "-m", "uvicorn", "webapp.asgi:application", *flags.split()],
        log=log("web"),
        is_site=True,
        ready=answers_http(host, settings.HTTP_PORT, "/ping"),
    )


def worker() -> Program:
    """Gossip and mingle are for fleets, and gossip fails when the broker comes back."""
    flags = "-l warning -P threads -c 4 --without-gossip --without-mingle -B -s"
    schedule = str(settings.DATA_DIR / "beat")
    return Program(
        "worker",
        [sys.executable, "-m", "celery", "-q", "-A", "webapp", "worker", *flags.split(), schedule],
        log=log("worker"),
        is_site=True,
    )


def coordinator() -> Program:
    """Its children write a last checkpoint and leave their swarms."""
    return Program(
        "coordinator",
        [sys.executable, str(MANAGE), "coordinator"],
        log=log("coordinator"),
        is_site=True,
        stop_s=20.0,
    )


def volunteer(launcher: Path) -> Program:
    """Named as its folder. A clean end (stopped, finished) is final; after trouble it comes back
    like any program."""
    command = [sys.executable, str(launcher), "--yes", "--plain", "--threads", "1"]
    name = launcher.parent.name
    return Program(
        name,
        command,
        log=log(name),
        env=demo_volunteer.environment(launcher.parent),
        nice=10,
        stop_s=28.0,  # as a preempted machine: it may hand in its round first
        again=lambda code: code != 0,
    )
