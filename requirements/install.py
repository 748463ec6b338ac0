"""`python3.11 requirements/install.py VENV LOCK`: a virtual environment with exactly one lock.

Standard library only. A second call with the same lock does nothing; one after a call that was
broken off begins anew, because pip cannot go on from half a package; two at once take turns.
PyTorch's own CPU index is used where it answers; elsewhere the configured package index must have
the wheel of the lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import venv
from pathlib import Path

TORCH_CPU_INDEX = os.environ.get("TORCH_CPU_INDEX", "https://download.pytorch.org/whl/cpu")
PROBE_S = 3.0
TESTED = (3, 11)
ALLOWED = ((3, 11), (3, 12), (3, 13))


def main(folder: Path, lock: Path) -> None:
    check_python()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        install(folder, lock)


def install(folder: Path, lock: Path) -> None:
    stamp, unfinished = folder / "installed.sha256", folder / "unfinished"
    if unfinished.exists():
        print(f"An installation into {folder} was broken off: it is made anew.", flush=True)
        shutil.rmtree(folder)
    wanted = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
    done = stamp.read_text().split() if stamp.exists() else []
    if wanted in done:
        return
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    flags = [
        "--no-deps",
        "--no-compile",
        "--require-hashes",
        "--disable-pip-version-check",
        "--quiet",
    ]
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", *flags, "-r", str(lock)]
    if answers(TORCH_CPU_INDEX):
        command += ["--extra-index-url", TORCH_CPU_INDEX]
    print(f"Installing {lock} into {folder} …", flush=True)
    unfinished.touch()
    if subprocess.run(command, check=False).returncode:
        sys.exit(
            "The installation stopped; pip's reason is above. If it found no CPU wheel of torch, "
            "set TORCH_CPU_INDEX to an index that has it."
        )
    stamp.write_text("\n".join([*done, wanted]))
    unfinished.unlink()


def check_python() -> None:
    version = sys.version_info[:2]
    if version not in ALLOWED:
        sys.exit(
            f"This is Python {version[0]}.{version[1]}; Potluck needs 3.11 (3.12 and 3.13 are "
            "untested). Install python3.11, or name one: make run PYTHON=/path/to/python3.11"
        )
    if version != TESTED:
        print(f"Python {version[0]}.{version[1]} is untested; 3.11 is what Potluck is tested with.")


def answers(index: str) -> bool:
    """Whether the index gives any answer within 3 s; without it, pip would retry for minutes."""
    if not index:
        return False
    try:
        with urllib.request.urlopen(f"{index.rstrip('/')}/torch/", timeout=PROBE_S):  # noqa: S310
            return True
    except urllib.error.HTTPError:
        return False
    except (OSError, ValueError):
        return False


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except KeyboardInterrupt:
        sys.exit("Broken off; the next call begins anew.")
