"""Borders and sizes: import contracts, the size gate, and a web process without torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = [
    path
    for folder in ("trainer", "webapp", "bench", "tests", "requirements")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "migrations" not in path.parts
]
MOST_LINES = 250
MOST_FUNCTION_LINES = 60


def test_no_file_is_longer_than_the_gate_allows():
    long = {
        str(path.relative_to(ROOT)): count
        for path in CODE
        if (count := path.read_text().count("\n")) > MOST_LINES
    }
    assert long == {}


def test_no_function_is_longer_than_the_gate_allows():
    long = {}
    for path in CODE:
        for item in ast.walk(ast.parse(path.read_text())):
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                count = (item.end_lineno or item.lineno) - item.lineno + 1
                if count > MOST_FUNCTION_LINES:
                    long[f"{path.relative_to(ROOT)}:{item.name}"] = count
    assert long == {}


def test_no_module_has_a_name_that_says_nothing():
    vague = {"utils.py", "helpers.py", "common.py", "manager.py", "misc.py"}
    assert [str(path) for path in CODE if path.name in vague] == []


def test_what_is_imported_of_our_own_is_there():
    """Of what nothing else runs, too, as the benchmarks."""
    ours = {folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").is_file()}
    lost = set()
    for path in CODE:
        for item in ast.walk(ast.parse(path.read_text())):
            if isinstance(item, ast.ImportFrom) and (item.module or "").split(".")[0] in ours:
                place = ROOT.joinpath(*item.module.split("."))
                if not place.with_suffix(".py").is_file() and not place.is_dir():
                    lost.add(f"{path.relative_to(ROOT)}: {item.module}")
    assert lost == set()


def test_every_test_of_the_browser_bears_that_name():
    """Among the others it leaves an event loop running, in which a hundred of them fail."""
    tests = (ROOT / "tests/browser").glob("test_*.py")
    assert [p.name for p in tests if "pytestmark = pytest.mark.browser" not in p.read_text()] == []


def test_the_import_contracts_hold():
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "entry",
    [
        "import django; django.setup(); import webapp.urls, webapp.asgi; webapp.urls.urlpatterns",
        "from trainer import catalogue; [catalogue.plugins(f) for f in catalogue.FOLDERS]",
    ],
    ids=["web", "catalogue"],
)
def test_web_processes_never_load_torch(entry):
    check = (
        "import os, sys; os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'tests.settings');"
        f"{entry};"
        "print([m for m in ('torch', 'hivemind', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
