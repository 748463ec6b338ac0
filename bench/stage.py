"""A throw-away site for benchmarks: its own data folder, Valkey and one web process."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.ports import free_port

START_S = 60.0


@dataclass
class Web:
    """One running web process."""

    port: int
    process: subprocess.Popen[bytes]

    def cpu_s(self) -> float:
        """User and system time so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system


@contextmanager
def site() -> Iterator[None]:
    """Sets Django up in this process on a new SQLite database, with a Valkey beside it."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # thousands of sockets
    with tempfile.TemporaryDirectory(prefix="potluck-bench-") as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "DATA_DIR": folder,
            "RUN_DIR": f"{folder}/run",
            "LOG_LEVEL": "WARNING",
        }
        import django
        from django.conf import settings
        from django.core.management import call_command

        django.setup()
        from webapp.ops.embedded import valkey_command

        command = valkey_command(settings.VALKEY_SOCKET, Path(folder) / "valkey")
        valkey = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            wait_until(settings.VALKEY_SOCKET.exists)
            call_command("migrate", verbosity=0)
            yield
        finally:
            valkey.terminate()
            valkey.wait()


@contextmanager
def web_process(application: str = "webapp.asgi:application") -> Iterator[Web]:
    """uvicorn with the flags of `manage.py up`, on a free port that is the site's address."""
    port = free_port()
    flags = (
        f"--port {port} --lifespan off --timeout-graceful-shutdown 4 "
        "--ws-per-message-deflate false --no-access-log --log-level warning"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", application, *flags.split()],
        env={**os.environ, "SITE_URL": f"http://127.0.0.1:{port}"},
    )
    try:
        wait_until(lambda: listens(port))
        yield Web(port, process)
    finally:
        process.terminate()
        process.wait()


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until(condition: object) -> None:
    deadline = time.monotonic() + START_S
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise TimeoutError(f"not ready within {START_S:.0f} s")
        time.sleep(0.02)
