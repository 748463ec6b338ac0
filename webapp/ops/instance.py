"""One running site for each data folder, and a port of its own."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
from pathlib import Path
from typing import IO

WANTED_FILES = 65_536


def keep_files_private(folder: Path) -> None:
    """What this process and its children write from now on is for this account alone, and so is
    what an earlier version wrote: the database and the mails hold addresses and links.
    """
    os.umask(0o077)
    for path in (*folder.glob("*.sqlite3*"), *folder.glob("mail/*")):
        path.chmod(0o600)


class CannotStart(Exception):
    """Says in words what is in the way and what to change."""


def claim(folder: Path, url: str) -> IO[str]:
    """The lock file of `folder`, held for as long as it stays open. Raises CannotStart."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = (folder / "up.lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        running = lock.read().strip() or url
        lock.close()
        raise CannotStart(
            f"Potluck is already running at {running} with the data in {folder}. "
            "Stop it with Ctrl-C in its terminal, or set DATA_DIR and HTTP_PORT for a second one."
        ) from error
    lock.truncate(0)
    lock.write(url)
    lock.flush()
    return lock


def check_port(host: str, port: int) -> None:
    """Raises CannotStart when something else listens there or the address is not ours."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CannotStart(
                f"The web server cannot listen on {host} port {port}: {error.strerror}. "
                f"Choose another port, for example HTTP_PORT={port + 1}, or another HTTP_HOST."
            ) from error


def raise_file_limit() -> None:
    """Every viewer is an open file; many systems allow only 1,024 until one asks for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(WANTED_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
