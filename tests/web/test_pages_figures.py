"""Figures for people, the words around them, and the colours they are shown in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from webapp.core.templatetags import ui

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = json.loads((Path(__file__).parent / "figures.json").read_text())
FUNCTIONS = {
    "number": ui.number,
    "bytes": ui.byte_size,
    "duration": ui.duration,
    "since": ui.since,
    "rate": ui.rate,
    "percent": ui.percent,
}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [(name, value, text) for name, rows in TABLE.items() for value, text in rows],
)
def test_a_figure_reads_as_the_table_says(name, value, text):
    assert FUNCTIONS[name](value) == text


def test_what_is_no_number_is_a_dash():
    assert ui.number(float("nan")) == ui.number("<b>") == ui.rate(float("inf")) == "–"


def test_scores_are_written_as_papers_write_them():
    shown = [ui.score(value) for value in (95.45, 91.97, 0.5, 92.0, 1234.5, None)]
    assert shown == ["95.45", "91.97", "0.50", "92.00", ui.number(1234.5), "–"]


def _colours() -> dict[str, tuple[str, str]]:
    css = (ROOT / "static/css/tokens.css").read_text()
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)
    return {name: (day, night) for name, day, night in found}


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("text", ["ink", "ink-2", "accent", "ok", "warn", "bad", "idle"])
@pytest.mark.parametrize("ground", ["ground", "surface", "sunken"])
def test_text_is_readable_on_every_ground(theme, text, ground):
    colours = _colours()
    assert _contrast(colours[text][theme], colours[ground][theme]) >= 4.6


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_series_of_a_chart_stand_out_from_their_sheet(theme):
    colours = _colours()
    for series in ("c0", "c1", "c2", "c3"):
        assert _contrast(colours[series][theme], colours["surface"][theme]) >= 3.1
    assert _contrast(colours["on-accent"][theme], colours["accent"][theme]) >= 4.6


def test_only_the_tokens_file_has_literal_colours():
    for path in (ROOT / "static").rglob("*"):
        if path.suffix in {".css", ".js"} and path.name != "tokens.css":
            colours = re.findall(r"#[0-9a-f]{3,8}\b(?=[;\s,)\"'])", path.read_text())
            assert colours in ([], ["#fff"]), path
