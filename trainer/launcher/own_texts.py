"""Where a volunteer's own texts are: asked once, kept on this computer, told to nobody."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from trainer.launcher.place import Unusable, in_words, write_whole

FILENAME = "own_texts.json"
NEEDED = """\
This collaboration trains on texts of your own. They stay on this computer.
A file or a folder: plain text (.txt, .md: one document a line), .jsonl, .csv
or .parquet. What is in it, and what leaves this computer, is shown before
anything is sent."""
QUESTION = "Path of your texts (empty: not now): "


def usable(text: str) -> Path:
    """The file or folder that a person named. Raises Unusable, with what is wrong with it."""
    path = Path(os.path.expanduser(_unquoted(text))).absolute()  # noqa: PTH111 - never raises
    try:
        path.stat()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Unusable(f"{path} cannot be read ({why}). Name a file or folder of yours.") from error
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        raise Unusable(f"{path} may not be read by you. Name another, or change its permissions.")
    if path.is_dir() and not any(path.iterdir()):
        raise Unusable(f"{path} is an empty folder. Put your texts into it, or name another.")
    return path


def _unquoted(text: str) -> str:
    """A path as terminals write one that is dropped on them: quoted, or with backslashes."""
    text = text.strip()
    if os.path.exists(os.path.expanduser(text)):  # noqa: PTH110, PTH111 - neither ever raises
        return text
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return words[0] if len(words) == 1 else text


def ask() -> Path | None:
    """Asks in the terminal until a path can be used; None when there is none."""
    print(NEEDED, flush=True)
    while answer := input(QUESTION).strip():
        try:
            return usable(answer)
        except Unusable as error:
            print(error, flush=True)
    return None


class OwnTexts(NamedTuple):
    """`path` None: none were named yet.

    `agreed`: the hash of the recipe for which their owner saw what leaves this computer. `shares`:
    the site may hear the loss on those that are held out.
    """

    path: Path | None = None
    agreed: str = ""
    shares: bool = False


def remember(folder: Path, texts: OwnTexts) -> None:
    kept = {"path": str(texts.path), "agreed": texts.agreed, "shares": texts.shares}
    write_whole(folder / FILENAME, json.dumps(kept))


def remembered(folder: Path) -> OwnTexts:
    """Raises Unusable when what was kept cannot be read."""
    path = folder / FILENAME
    try:
        kept: Any = json.loads(path.read_text(encoding="utf-8"))
        return OwnTexts(Path(kept["path"]), str(kept["agreed"]), kept["shares"] is True)
    except FileNotFoundError:
        return OwnTexts()
    except OSError as error:
        raise Unusable(in_words(error, path)) from error
    except (ValueError, KeyError, TypeError):
        raise Unusable(f"{path} is damaged. Delete it, and name your texts again.") from None
