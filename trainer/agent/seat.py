"""Where one agent sits: its site, its folders, and the lock that keeps a second one out."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO

from pydantic import Field, ValidationError

from trainer.launcher.machine import SPLITS, threads_by_default
from trainer.launcher.place import Unusable, make_folder, site_folder, stored_device
from trainer.wire import Message, Role, Slug

LOG_BYTES = 5_000_000


@dataclass(frozen=True)
class Seat:
    """`cache` holds downloads; `folder` is private to this device and collaboration.

    `port` is where a volunteer wants to be dialled, 0: anywhere. `split` is what `num_processes`
    processes split. `own_texts`: a volunteer's file or folder, where the recipe trains on such;
    `shares_own`: the site may hear the loss on what of it is held out. `is_placed`: the site chose
    the collaboration.
    """

    site: str
    token: str
    slug: str
    cache: Path
    folder: Path
    role: Role = Role.PEER
    num_threads: int = 1
    num_processes: int = 1
    split: str = SPLITS[0]
    log_file: Path | None = None
    checkpoint_folder: Path | None = None
    listen_address: str = "/ip4/0.0.0.0/tcp/0"
    announce_host: str = ""
    port: int = 0
    own_texts: Path | None = None
    shares_own: bool = False
    is_placed: bool = False


class CoordinatorConfig(Message):
    """The file that `coordinate --config` reads; the site's supervisor writes it, mode 0600."""

    site: str = Field(pattern=r"^https?://")
    token: str = Field(min_length=20)
    collaboration: Slug
    folder: Path
    checkpoint_folder: Path
    listen_address: str = "/ip4/0.0.0.0/tcp/0"
    announce_host: str = ""
    num_threads: int = Field(1, ge=1)


def volunteer_seat(
    home: Path,
    site: str,
    slug: str | None,
    *,
    place: Callable[[str, str], str],
    threads: int | None = None,
    port: int = 0,
) -> Seat:
    """Its collaboration is the one named, else the one it enrolled for; where that is "", `place`
    names one for (site, token).

    Raises Unusable when the folder cannot be used or the device has no token for this site.
    """
    home = make_folder(home)
    device = stored_device(home, site)
    if device is None:
        raise Unusable(
            f"This device is not enrolled at {site} (no token in {site_folder(home, site)}). "
            "Download a launcher on the site's Join page and start it."
        )
    named = str(device.get("collaboration") or "") if slug is None else slug
    slug = named or place(site, device["token"])
    return Seat(
        site=site,
        token=device["token"],
        slug=slug,
        cache=make_folder(home / "files"),
        folder=make_folder(site_folder(home, site) / slug),
        num_threads=threads or threads_by_default(),
        log_file=make_folder(home / "logs") / f"{slug}.log",
        port=port,
        is_placed=not named,
    )


def coordinator_seat(path: Path) -> Seat:
    """Raises Unusable when the file is not what it should be; its values are not repeated."""
    try:
        config = CoordinatorConfig.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        where = ", ".join(str(item["loc"][0]) for item in error.errors() if item["loc"])
        raise Unusable(f"{path} is not a coordinator's configuration: look at {where}") from None
    seat = Seat(
        site=config.site.rstrip("/"),
        token=config.token,
        slug=config.collaboration,
        cache=make_folder(config.folder / "files"),
        folder=make_folder(config.folder),
        role=Role.COORDINATOR,
        num_threads=config.num_threads,
        checkpoint_folder=make_folder(config.checkpoint_folder),
        announce_host=config.announce_host,
    )
    return replace(seat, listen_address=config.listen_address)


def lock(folder: Path) -> IO[str]:
    """Held until this process ends, however it ends. Raises Unusable when another one holds it.

    A record lock, because hivemind's forked processes must not inherit it.
    """
    file = (folder / "agent.lock").open("a+")
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        pid = file.read().strip() or "unknown"
        file.close()
        raise Unusable(
            f"This device already takes part in {folder.name} (process {pid}). "
            "Stop that one first, or watch it on the site."
        ) from error
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def log_to(path: Path | None, label: str = "") -> None:
    """Everything from INFO on goes to the file, or to the standard error output without one."""
    logging.raiseExceptions = False  # a full disk is told once, and not with each line again
    handler: logging.Handler = (
        RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", delay=True)
        if path
        else logging.StreamHandler()
    )
    handler.setFormatter(
        logging.Formatter(f"%(asctime)s {label}%(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler])
