"""The agent's private Python environment, made from a hash-pinned lock that the site serves."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.launcher import web
from trainer.launcher.machine import gpu_name
from trainer.launcher.place import Unusable, in_words, make_folder, site_folder, write_whole

Say = Callable[[str], None]
COMPLETE = ".complete"
QUICK_S = 3.0
UNUSED_S = 14 * 24 * 3600
MISLEADING = (
    *("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"),
    "PYTHONDONTWRITEBYTECODE",  # wheels are installed without: every start would compile them
)
INDEX_NOTE = "the package index this machine is set up for"


def chosen_python() -> Path | None:
    """`POTLUCK_ENV`: an environment that is there already (its folder, or its python)."""
    chosen = os.environ.get("POTLUCK_ENV")
    if not chosen:
        return None
    path = Path(chosen).expanduser().absolute()
    python = path if path.is_file() else path / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise Unusable(f"POTLUCK_ENV is {chosen}, but there is no Python in it.")
    return python


def prepare(home: Path, site: str, *, say: Say) -> Path:
    """The python of a complete environment, made when it is not there yet.

    When the site is away, the environment of the last start is used. Raises Unusable,
    web.Unreachable, web.Refusal or web.Damaged, each in words.
    """
    envs = make_folder(home / "envs")
    newest = site_folder(home, site) / "environment"
    with (envs / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second start waits, and finds it complete
        try:
            manifest = json.loads(web.call(f"{site}/launcher/manifest.json", timeout_s=QUICK_S))
        except web.Unreachable:
            known = newest.read_text(encoding="utf-8") if newest.exists() else ""
            if known and (envs / known / COMPLETE).exists():
                say("The site does not answer; starting what is installed.")
                return _python_of(envs / known)
            raise
        kind = "cuda" if gpu_name() else "cpu"
        python = suitable_python(manifest)
        env = envs / _key(manifest, kind, python)
        if not (env / COMPLETE).exists():
            _build(env, site, manifest, kind, python, say)
        os.utime(env / COMPLETE)
        write_whole(newest, env.name)
        _delete_unused(envs, env)
    return _python_of(env)


def trainer_alone(home: Path, site: str, *, say: Say) -> Path:
    """A folder with the site's trainer, for an environment that has everything else."""
    envs = make_folder(home / "envs")
    newest = site_folder(home, site) / "trainer"
    try:
        manifest = json.loads(web.call(f"{site}/launcher/manifest.json", timeout_s=QUICK_S))
    except web.Unreachable:
        known = newest.read_text(encoding="utf-8") if newest.exists() else ""
        if not known or not (envs / known).is_dir():
            raise
        say("The site does not answer; starting what is installed.")
        return envs / known
    folder = envs / f"trainer-{manifest['trainer']['sha256'][:12]}"
    if not folder.is_dir():
        draft = make_folder(folder.with_name(f"{folder.name}-{os.getpid()}"))
        with zipfile.ZipFile(_fetch_wheel(site, manifest["trainer"], draft)) as wheel:
            wheel.extractall(draft / "files")
        try:
            (draft / "files").rename(folder)
        except OSError as error:
            if not folder.is_dir():  # else: another start was quicker
                raise Unusable(in_words(error, folder)) from error
        shutil.rmtree(draft, ignore_errors=True)
    write_whole(newest, folder.name)
    return folder


def _python_of(env: Path) -> Path:
    return env / "bin" / "python"


def _key(manifest: dict[str, Any], kind: str, python: str) -> str:
    parts = [manifest["locks"][kind], manifest["trainer"]["sha256"], python, platform.platform()]
    return f"{kind}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]}"


def suitable_python(manifest: dict[str, Any]) -> str:
    """This Python, or another one on the PATH that the packages exist for. Raises Unusable."""
    oldest, below = tuple(manifest["python_from"]), tuple(manifest["python_below"])
    if oldest <= sys.version_info[:2] < below:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(below[1] - 1, oldest[1] - 1, -1)]
    for name in names:
        if found := shutil.which(name):
            return found
    raise Unusable(
        f"This is Python {platform.python_version()}; the packages exist for "
        f"{', '.join(name[6:] for name in reversed(names))}. Install one of these, "
        f"for example {names[-1]}, and start again."
    )


def _build(
    env: Path, site: str, manifest: dict[str, Any], kind: str, python: str, say: Say
) -> None:
    began = time.monotonic()
    say(f"Making a private Python environment in {env}. This happens once.")
    shutil.rmtree(env, ignore_errors=True)
    work = env.with_name(f"{env.name}-files")
    try:
        make_folder(work)
        lock = web.call(f"{site}/launcher/lock/{kind}.txt")
        if hashlib.sha256(lock).hexdigest() != manifest["locks"][kind]:
            raise web.Damaged(
                "The list of packages is not the one that the site announced. "
                "Nothing was installed; try again, and tell the organiser if it stays so."
            )
        trainer = _fetch_wheel(site, manifest["trainer"], work)
        _make_venv(env, python)
        pip = _pip(env, site, manifest, work)
        # the file name alone, seen from `work`: no path with blanks or quotes in a lock
        wheel = f"./{trainer.name} --hash=sha256:{manifest['trainer']['sha256']}\n"
        (work / "lock.txt").write_bytes(lock.rstrip() + b"\n" + wheel.encode())
        _install(pip, work, lock, kind, manifest, say)
    except OSError as error:
        raise Unusable(in_words(error, env)) from error
    shutil.rmtree(work, ignore_errors=True)
    (env / COMPLETE).touch()
    say(f"The environment is ready after {time.monotonic() - began:.0f} s.")


def _fetch_wheel(site: str, wanted: dict[str, str], work: Path) -> Path:
    name = wanted["name"]
    if not re.fullmatch(r"[A-Za-z0-9._+-]+\.whl", name):
        raise web.Damaged(f"The site announces a wheel with a strange name: {name!r}.")
    return web.download(f"{site}/launcher/wheels/{name}", work / name, wanted["sha256"])


def _make_venv(env: Path, python: str) -> None:
    """Without pip: Debian's Python has no ensurepip unless another package is installed."""
    _run([python, "-m", "venv", "--without-pip", str(env)], "The environment cannot be made")


def _pip(env: Path, site: str, manifest: dict[str, Any], work: Path) -> list[str]:
    """pip out of the site's wheel; where the site has none, this Python's own."""
    python = str(_python_of(env))
    if manifest.get("pip"):
        return [python, str(_fetch_wheel(site, manifest["pip"], work) / "pip")]
    _run([python, "-m", "ensurepip"], "This Python comes without pip (install python3-venv)")
    return [python, "-m", "pip"]


def _install(
    pip: list[str], work: Path, lock: bytes, kind: str, manifest: dict[str, Any], say: Say
) -> None:
    options = ["--no-deps", "--require-hashes", "--no-compile", "--disable-pip-version-check"]
    options += ["--quiet", "--progress-bar", "off"]
    torch_index = manifest.get("torch_cpu_index") or ""
    if kind == "cpu" and torch_index and _answers(torch_index):
        say(f"Packages come from {INDEX_NOTE}, and PyTorch's CPU build from {torch_index}.")
        options += ["--extra-index-url", torch_index]
    else:
        say(f"Packages come from {INDEX_NOTE}.")
    failed = "The packages cannot be installed; start again to try anew"
    if builder := builder_of(lock):
        (work / "builder.txt").write_bytes(builder)
        _run([*pip, "install", *options, "-r", "builder.txt"], failed, cwd=work)
    options += ["--no-build-isolation"]
    if b"--only-binary" not in lock:
        options += ["--only-binary=:all:"]
    _run([*pip, "install", *options, "-r", "lock.txt"], failed, cwd=work)


def builder_of(lock: bytes) -> bytes:
    """The lock's setuptools with all its hashes, or nothing where it has none.

    Some packages of the lock are source only: they are built with it and nothing else.
    """
    found = re.search(rb"^setuptools==(?:.*\\\n)*.*", lock, re.MULTILINE)
    return found[0] + b"\n" if found else b""


def _answers(index: str) -> bool:
    try:
        web.open_url(f"{index.rstrip('/')}/torch/", timeout_s=QUICK_S).close()
    except (web.Unreachable, web.Refusal):
        return False
    return True


def _run(command: list[str], failed: str, cwd: Path | None = None) -> None:
    env = {key: value for key, value in os.environ.items() if key not in MISLEADING}
    env["PYTHONUTF8"] = "1"
    done = subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise Unusable("\n".join([f"{failed}:", *said[-12:]]))


def _delete_unused(envs: Path, used: Path) -> None:
    for marker in envs.glob(f"*/{COMPLETE}"):
        env = marker.parent
        if env != used and time.time() - marker.stat().st_mtime > UNUSED_S:
            shutil.rmtree(env, ignore_errors=True)
