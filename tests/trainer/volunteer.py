"""A person with a launcher of the Join page and a data folder of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.trainer.launcher_site import LauncherSite
from webapp.launcher.builder import personal_pyz

CODE = "tested-code-tested-code-1"
NEW_CODE = "new-code-new-code-new-code"


class Volunteer:
    def __init__(self, folder: Path, site: LauncherSite) -> None:
        self.folder, self.home = folder, folder / "home"
        folder.mkdir(parents=True, exist_ok=True)
        self.launcher = folder / "potluck.pyz"
        self.site = site
        self.download(CODE)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C",
            "POTLUCK_HOME": str(self.home),
            "PIP_INDEX_URL": f"{site.url}/simple/",
            "PIP_TRUSTED_HOST": "127.0.0.1",
            "PYTHONPATH": "/somewhere/else",
            "NO_PROXY": "127.0.0.1",
        }

    def download(self, code: str, **more: object) -> None:
        """A launcher of the Join page; `more` is in its configuration, too."""
        config = {"site": self.site.url, "code": code, "collaboration": "demo"}
        self.launcher.write_bytes(personal_pyz(config | more))

    def use_this_python(self) -> None:
        """Its environment is there, and a `tiny` that does nothing takes part."""
        self.env |= {"POTLUCK_ENV": sys.prefix, "PYTHONPATH": str(self.folder)}
        (self.folder / "tiny.py").write_text("")

    def popen(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(self.launcher), *words],
            cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
        )  # fmt: skip

    def start(self, *words: str) -> tuple[int, str]:
        process = self.popen(*words)
        out, _ = process.communicate(timeout=120)
        return process.returncode, out

    def device_files(self) -> list[Path]:
        return list(self.home.rglob("device.json"))
