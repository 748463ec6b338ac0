"""What must be documented, is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainer import catalogue
from trainer.tokenizing import STEPS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


@pytest.mark.parametrize("source", ["trainer", "site", "dev", "data", "bench"])
def test_every_direct_dependency_has_its_reason(source):
    lines = (ROOT / "requirements" / f"{source}.in").read_text().splitlines()
    names = [
        re.split(r"[\[<>=~]", line)[0].strip() for line in lines if re.match(r"[A-Za-z]", line)
    ]
    table = "\n".join(
        line for line in (DOCS / "dependencies.md").read_text().splitlines() if line.startswith("|")
    )
    missing = [name for name in names if not re.search(rf"[|,] {re.escape(name)}[ ,]", table)]
    assert missing == []


def test_every_setting_is_in_the_operations_guide():
    settings = (ROOT / "webapp" / "settings.py").read_text()
    names = re.findall(r'env(?:ironment)?\.\w+\(\s*"([A-Z_]+)"', settings)
    guide = (DOCS / "operations.md").read_text()
    assert names
    assert [name for name in names if f"`{name}`" not in guide] == []


def test_cpu_locks_hold_no_gpu_package_and_all_locks_agree():
    locks = {
        name: (ROOT / name).read_text()
        for name in (
            "requirements.txt",
            "requirements/dev.txt",
            "requirements/volunteer-cpu.txt",
            "requirements/volunteer-cuda.txt",
        )
    }
    for name, text in locks.items():
        gpu = re.findall(r"^(?:nvidia|cuda|triton)[a-z0-9-]*==", text, re.MULTILINE)
        assert bool(gpu) == (name == "requirements/volunteer-cuda.txt")
    for package in ("torch", "hivemind", "pydantic", "protobuf", "numpy"):
        pins = {re.search(rf"^{package}==(\S+)", text, re.MULTILINE)[1] for text in locks.values()}
        assert len(pins) == 1, (package, pins)


def test_a_volunteers_lock_holds_no_web_package():
    text = (ROOT / "requirements/volunteer-cpu.txt").read_text().lower()
    assert not re.findall(r"^(django|celery|channels|uvicorn|plotly)[a-z-]*==", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(catalogue.plugins("strategies")))
def test_the_guide_has_every_strategys_rule_as_the_pages_show_it(name):
    guide, plugin = (DOCS / "strategies.md").read_text(), catalogue.plugins("strategies")[name]
    assert f"```\n{plugin.formula}\n```" in guide
    assert f"[{plugin.source.words}]({plugin.source.address})" in guide and plugin.label in guide


def test_the_guide_has_every_step_of_the_normal_form():
    guide = (DOCS / "organiser.md").read_text()
    assert [name for name in STEPS if f"| `{name}` | " not in guide] == []
