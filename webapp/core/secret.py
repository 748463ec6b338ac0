"""A secret that is generated once and then kept in a file only its owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def kept_secret(path: Path) -> str:
    """The text in `path`; a new random one is written with mode 0600 on the first call.

    Several processes may start at once: the one that creates the file decides.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = secrets.token_urlsafe(50)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(fresh)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text()
