"""tests/all.sh: what fails only in company is told and passes; a fault fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ALL = Path(__file__).parents[1] / "all.sh"
SETTINGS = """
[tool.pytest.ini_options]
addopts = "--strict-markers -p no:cacheprovider"
markers = ["swarm", "browser", "soak", "heavy"]
"""
PASSES = "def test_{0}(): pass\n"
MARKED = "import pytest\npytestmark = pytest.mark.{0}\n"
STARVED = """
import pathlib, pytest
@pytest.mark.swarm
def test_starved():
    seen = pathlib.Path("seen")
    was_here = seen.exists()
    seen.touch()
    assert was_here
"""
FAULT = "import pytest\n@pytest.mark.swarm\ndef test_fault(): assert False\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The smallest in which each invocation has a test."""
    for name in ("web", "live", "swarm"):
        (tmp_path / "tests" / name).mkdir(parents=True)
    shutil.copy(ALL, tmp_path / "tests/all.sh")
    (tmp_path / "pyproject.toml").write_text(SETTINGS)
    (tmp_path / "Makefile").write_text("lint:\n\t@echo clean\n")
    runs_it = "import subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:]).returncode)\n"
    (tmp_path / "tests/postgres.py").write_text(runs_it)
    (tmp_path / "tests/web/test_web.py").write_text(PASSES.format("web"))
    for name in ("swarm", "browser"):
        content = MARKED.format(name) + PASSES.format(name)
        (tmp_path / f"tests/test_{name}.py").write_text(content)
    site = MARKED.format("swarm") + PASSES.format("site")
    (tmp_path / "tests/swarm/test_site_it.py").write_text(site)
    return tmp_path


def _run(project: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [project / "tests/all.sh", "not soak"],
        env={"PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )


def test_nothing_is_run_twice_where_all_passes(project: Path):
    ended = _run(project)

    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count(" passed") == 5 and "once more" not in ended.stdout


def test_what_failed_in_company_is_run_alone_and_named(project: Path):
    (project / "tests/test_starved.py").write_text(STARVED)

    ended = _run(project)

    assert ended.returncode == 0, ended.stdout
    assert "FAILED tests/test_starved.py::test_starved" in ended.stdout
    said = ended.stdout.partition("== once more, alone: real swarms\n")[2]
    assert "1 passed" in said and "once more" not in said


def test_a_fault_fails_both_times(project: Path):
    (project / "tests/test_starved.py").write_text(STARVED)
    (project / "tests/test_fault.py").write_text(FAULT)

    ended = _run(project)

    assert ended.returncode == 1
    said = ended.stdout.partition("== once more, alone: real swarms\n")[2]
    assert "1 failed, 1 passed" in said


@pytest.mark.parametrize("broken", ["import nowhere\n", "def test_not_closed(:\n"])
def test_what_cannot_even_be_loaded_fails(project: Path, broken: str):
    (project / "tests/web/test_broken.py").write_text(broken)

    assert _run(project).returncode == 1


def test_an_invocation_that_does_not_begin_fails(project: Path):
    (project / "tests/postgres.py").write_text("import sys\nsys.exit(1)\n")

    assert _run(project).returncode == 1


def test_a_border_that_does_not_hold_fails(project: Path):
    (project / "Makefile").write_text("lint:\n\t@false\n")

    ended = _run(project)

    assert ended.returncode == 1 and "once more" not in ended.stdout
