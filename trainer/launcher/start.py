"""The launcher's steps: say what will be done, ask once, enrol, install, become the agent."""

from __future__ import annotations

import argparse
import json
import os
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

from trainer.launcher import web
from trainer.launcher.enrolment import enrolled
from trainer.launcher.environment import MISLEADING, chosen_python, prepare, trainer_alone
from trainer.launcher.machine import add_options
from trainer.launcher.own_texts import OwnTexts, ask, remember, remembered, usable
from trainer.launcher.place import Unusable, data_folder, make_folder, site_folder

WINDOWS = (
    "Potluck does not run on Windows itself, because its peer-to-peer library does not: "
    "install WSL2 and use the Linux launcher inside it."
)
INTRODUCTION = """\
Potluck trains a language model together with other people's computers.

This will
  do    {install}
        and train in {what} for {site}
        until you stop it with Ctrl-C
  use   all processor cores but one, at low priority; about 1.5 GB of disk
  send  to the site: what it trained, its loss and speed, and this machine's
        system, processor and memory; to other peers: gradients, and, as in
        any peer-to-peer program, your network address. {files}
"""
NO_FILES = "Your files are not read."
OWN_TEXTS = """\
Of your
        files only those are read that you name; their text is not sent."""
MADE = """\
make a private Python environment in {home}
        (the first start downloads about 450 MB)"""
USED = """\
use the Python environment of {python},
        keep its own files in {home}"""


def main(words: list[str] | None = None) -> int:
    try:
        return _start(_given(words))
    except (Unusable, web.Unreachable, web.Refusal, web.Damaged) as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:
        print("Stopped. Nothing is running; start it again at any time.", file=sys.stderr)
        return 130
    return 1


def _given(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="potluck.pyz", description="Lends this computer to a collaboration."
    )
    parser.add_argument("--yes", action="store_true", help="do not ask (for headless machines)")
    parser.add_argument("--plain", action="store_true", help="print lines, for logs")
    add_options(parser)
    parser.add_argument(
        "--data",
        default="",
        metavar="PATH",
        help="file or folder of your own texts, for a collaboration that trains on such",
    )
    parser.add_argument("--port", type=int, default=0, help="where others may dial this computer")
    parser.add_argument("--home", type=Path, default=None, help="data folder")
    return parser.parse_args(words)


def read_config(path: Path) -> dict[str, Any]:
    """What the site wrote into this download. Raises Unusable when it is not there or damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read("config.json"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise Unusable(
            f"{path} is no personal launcher, or it is damaged. Download it on a site's Join page."
        ) from error
    if not isinstance(config, dict) or not isinstance(config.get("site"), str):
        raise Unusable(f"{path} does not say which site it is for. Download it again.")
    return config


def _start(given: argparse.Namespace) -> int:
    if os.name == "nt":
        raise Unusable(WINDOWS)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    config = read_config(Path(sys.argv[0]))
    site = config["site"].rstrip("/")
    home = make_folder(given.home.expanduser().absolute() if given.home else data_folder())
    texts = usable(given.data) if given.data else None
    if not enrolled(home, site, config, lambda: _agreed(given, config, home)):
        print("Nothing was installed.")
        return 0
    if not _texts_named(given, config, site_folder(home, site), texts):
        print("Nothing was read; start it again when you have some.")
        return 0
    say = partial(print, flush=True)
    if python := chosen_python():
        paths = [str(trainer_alone(home, site, say=say)), os.environ.get("PYTHONPATH", "")]
    else:
        python, paths = prepare(home, site, say=say), []
    _replace_by_agent(python, paths, given, config, home)
    raise AssertionError("unreachable: this process is the agent now")


def _agreed(given: argparse.Namespace, config: dict[str, Any], home: Path) -> bool:
    python = chosen_python()
    install = USED.format(python=python, home=home) if python else MADE.format(home=home)
    files = OWN_TEXTS if config.get("own_texts") else NO_FILES
    print(INTRODUCTION.format(install=install, files=files, **_shown(config)), flush=True)
    if given.yes:
        return True
    if not sys.stdin.isatty():
        raise Unusable("Nobody is here to be asked. Start it with --yes if that is all right.")
    return input("Go on? [y/N] ").strip().lower() in ("y", "yes")


def _texts_named(
    given: argparse.Namespace, config: dict[str, Any], folder: Path, texts: Path | None
) -> bool:
    """Whether it is known where the volunteer's texts are, as far as this collaboration needs any.

    They are remembered in the device's private folder, so that no command line shows them.
    """
    if not (texts or config.get("own_texts")):
        return True
    folder = make_folder(folder / str(config.get("collaboration", "")))
    known = remembered(folder).path
    if not (texts or known) and (given.yes or not sys.stdin.isatty()):
        raise Unusable("This collaboration trains on texts of your own: start with --data PATH.")
    texts = texts or known or ask()
    if texts and texts != known:
        remember(folder, OwnTexts(texts))
    return texts is not None


def _shown(config: dict[str, Any]) -> dict[str, str]:
    slug = config.get("collaboration")
    what = f'"{slug}"' if slug else "the collaborations that need it"
    return {"site": str(config.get("site", "")), "what": what}


def _replace_by_agent(
    python: Path, paths: list[str], given: argparse.Namespace, config: dict[str, Any], home: Path
) -> None:
    """This process becomes the agent, so that signals reach it directly."""
    site = config["site"].rstrip("/")
    command = [str(python), "-m", "trainer", "run", "--site", site, "--home", str(home)]
    if "collaboration" in config:
        command += ["--collaboration", str(config["collaboration"])]
    command += ["--plain"] if given.plain else []
    command += ["--yes"] if given.yes else []
    command += ["--threads", str(given.threads)] if given.threads else []
    if given.processes.number > 1:
        command += ["--processes", "{}:{}".format(*given.processes)]
    command += ["--port", str(given.port)] if given.port else []
    env = {key: value for key, value in os.environ.items() if key not in MISLEADING}
    env["PYTHONUTF8"] = "1"
    if paths:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.chdir(home)
    os.execve(command[0], command, env)  # noqa: S606
