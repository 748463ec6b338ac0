"""The personal launcher: one shared zip application with a small configuration per download."""

from __future__ import annotations

import io
import json
import tempfile
import zipapp
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

import trainer
from webapp.collaborations.models import Collaboration

PYZ = "potluck.pyz"
MAIN = "import runpy\nrunpy.run_module('trainer.launcher', run_name='__main__')\n"


@cache
def shared_pyz() -> bytes:
    """The launcher without any configuration: `trainer/launcher` and a shebang, about 20 KB."""
    source = Path(trainer.__file__).parent / "launcher"
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        package = tree / "trainer" / "launcher"
        package.mkdir(parents=True)
        (tree / "trainer" / "__init__.py").write_bytes(Path(trainer.__file__).read_bytes())
        (tree / "__main__.py").write_text(MAIN)
        for path in source.glob("*.py"):
            (package / path.name).write_bytes(path.read_bytes())
        target = Path(folder) / PYZ
        zipapp.create_archive(tree, target, interpreter="/usr/bin/env python3", compressed=True)
        return target.read_bytes()


def configuration(
    collaboration: Collaboration | None, code: str, device_name: str
) -> dict[str, Any]:
    """What a personal launcher knows; `own_texts`: it asks where the volunteer's own texts are.

    Without a collaboration, the site gives the device one.
    """
    return {
        "site": settings.SITE_URL,
        "code": code,
        "collaboration": collaboration.slug if collaboration else "",
        "device_name": device_name,
        "own_texts": bool(collaboration and collaboration.recipe.is_private),
    }


def personal_pyz(config: dict[str, Any]) -> bytes:
    """The launcher with its `configuration` in it, as `config.json`."""
    out = io.BytesIO(shared_pyz())
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", json.dumps(config, ensure_ascii=False, indent=1))
    return out.getvalue()
