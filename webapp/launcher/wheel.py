"""What launchers install from the site: the trainer's wheel, the locks, and pip itself.

The wheel is written here with zipfile alone: building needs no network and no tools, and the same
code gives the same bytes, so its hash is stable.
"""

from __future__ import annotations

import base64
import ensurepip
import hashlib
import os
import threading
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

import trainer
from webapp.core.errors import UserError

LOCKS = {"cpu": "volunteer-cpu.txt", "cuda": "volunteer-cuda.txt"}
PYTHON_FROM, PYTHON_BELOW = (3, 11), (3, 14)
EPOCH = (2020, 1, 1, 0, 0, 0)
NAME = f"potluck_trainer-{trainer.__version__}"
METADATA = f"""\
Metadata-Version: 2.1
Name: potluck-trainer
Version: {trainer.__version__}
Requires-Python: >={PYTHON_FROM[0]}.{PYTHON_FROM[1]},<{PYTHON_BELOW[0]}.{PYTHON_BELOW[1]}
"""
_building = threading.Lock()
WHEEL = "Wheel-Version: 1.0\nGenerator: potluck\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def trainer_files() -> dict[str, bytes]:
    """{name in the wheel: content} of every Python file of the trainer."""
    root = Path(trainer.__file__).parent
    return {
        f"trainer/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*.py"))
    }


def write_wheel(path: Path) -> None:
    files = trainer_files() | {
        f"{NAME}.dist-info/METADATA": METADATA.encode(),
        f"{NAME}.dist-info/WHEEL": WHEEL.encode(),
    }
    record = "".join(f"{name},{record_hash(data)},{len(data)}\n" for name, data in files.items())
    record += f"{NAME}.dist-info/RECORD,,\n"
    files[f"{NAME}.dist-info/RECORD"] = record.encode()
    draft = path.with_suffix(f".{os.getpid()}")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), data, zipfile.ZIP_DEFLATED)
    draft.replace(path)


def record_hash(data: bytes) -> str:
    """The form RECORD wants: urlsafe base64 without padding."""
    digest = hashlib.sha256(data).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def trainer_wheel() -> Path:
    """Built once per process start, so that a changed trainer is never served stale; once, too,
    when the first launchers ask together."""
    with _building:
        return _built()


@cache
def _built() -> Path:
    folder = settings.DATA_DIR / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}-py3-none-any.whl"
    write_wheel(path)
    return path


@cache
def pip_wheel() -> Path | None:
    """The pip that came with this Python: for machines whose Python has none (Debian's has not)."""
    bundled = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    return bundled[-1] if bundled else None


def wheel_path(name: str) -> Path:
    """Raises UserError for any name but the wheels of the manifest."""
    for path in (trainer_wheel(), pip_wheel()):
        if path is not None and path.name == name:
            return path
    raise UserError(f"There is no wheel called {name} here.", "Download the launcher again.")


def lock_text(kind: str) -> str:
    """The hash-pinned requirements of `cpu` or `cuda`. Raises UserError otherwise."""
    if kind not in LOCKS:
        raise UserError(f"There is no lock called {kind}.", "Choose cpu or cuda.")
    return (settings.BASE_DIR / "requirements" / LOCKS[kind]).read_text()


def described(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None
    return {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


@cache
def manifest() -> dict[str, Any]:
    """All a launcher must know before it installs; every file is named with its hash."""
    return {
        "trainer": described(trainer_wheel()),
        "pip": described(pip_wheel()),
        "locks": {kind: hashlib.sha256(lock_text(kind).encode()).hexdigest() for kind in LOCKS},
        "torch_cpu_index": settings.TORCH_CPU_INDEX,
        "python_from": list(PYTHON_FROM),
        "python_below": list(PYTHON_BELOW),
    }
