"""Wikitext as plain text: each rule by itself, and none that takes long on a hostile page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trainer.sources.wikitext import plain

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a<!-- no\n -- no -->b", "ab"),
        ("a{{Infobox|x={{lang|bn|y}}\n|z=1}}b", "ab"),
        ("A ({{lang|bn|x}}; ) is B", "A is B"),
        ('before\n{| class="wikitable"\n! h\n|-\n| c\n{|\n| inner\n|}\n|}\nafter', "before\nafter"),
        ('a<ref name="x">note [[b]]</ref> c<ref name="x" /> d<ref group=n/>.', "a c d."),
        ("a <math>x^2 < y</math>b <gallery>\nf.jpg\n</gallery>c", "a b c"),
        ("see [[Kolkata]], [[India|the country]] and [[:Category:City|cities]]",
         "see Kolkata, the country and cities"),
        ("[[File:a.jpg|thumb|200px|A [[city]] by [https://x.org a man]]]Text", "Text"),
        ("[[Image:a.jpg]][[category:x]] word [[fr:mot]]", "word"),
        ("[[C:x]] and [[Star Trek: Picard]]", "C:x and Star Trek: Picard"),
        ("[https://x.org/a?b=1 the page] and [//y.org] end", "the page and end"),
        ("'''Bold''' and ''italic'' and '''''both''''' isn't", "Bold and italic and both isn't"),
        ("== Empty ==\n== History ==\n=== Early ===\ntext\n== See also ==\n",
         "History\nEarly\ntext"),
        ("* one\n** two\n# three\n; term : words\n----\n", "one\ntwo\nthree\nterm : words"),
        ("a<br />b <span style='x'>c</span> <nowiki>d</nowiki>", "ab c d"),
        ("1&nbsp;km &ndash; 3 &lt; 4 __NOTOC__ __INDEX__", "1 km – 3 < 4"),
        ("x = y {{unclosed | text", "x = y unclosed | text"),
        ("{|\n| unclosed", "| unclosed"),
        ("<ref>unclosed and [[more", "unclosed and more"),
        ("stray }} and ]] and --> here", "stray and and here"),
        ("কলকাতা (Kolkata) {{IPA|x}} হল [[পশ্চিমবঙ্গ]]ের রাজধানী।",
         "কলকাতা (Kolkata) হল পশ্চিমবঙ্গের রাজধানী।"),
        ("", ""),
        ("{{only|a template}}", ""),
    ],
)  # fmt: skip
def test_a_rule_takes_markup_and_leaves_words(text, words):
    assert plain(text) == words


@given(some.text(alphabet="ক্ষািabc ,.\n"))
def test_text_without_markup_keeps_every_word(text):
    assert plain(text).split() == [
        word for line in text.split("\n") if any(map(str.isalnum, line)) for word in line.split()
    ]


@given(some.text(alphabet="ab {}[]|<>/='!-\n:refFil&;*#"))
def test_no_mixture_of_marks_breaks_it(text):
    assert "{{" not in plain(text) or "&" in text


HOSTILE = """
import sys
from trainer.sources.wikitext import plain
for part in sys.argv[1:]:
    plain(part.encode().decode("unicode_escape") * (300_000 // len(part)))
"""


def test_a_page_of_nothing_but_one_mark_takes_seconds_and_not_hours():
    marks = ["{{", "}}", "[[", "]]", "[[a|", "<ref>", "<!--", "'", "=", "(", "[", "<", "_", "&"]
    marks += [
        "&amp",
        "[[[[a]]]]",
        "[http://x ",
        "<ref ",
        "* ",
        "( ",
        "{|\\n",
        "|}\\n",
        "== a ==\\n",
    ]
    subprocess.run([sys.executable, "-c", HOSTILE, *marks], cwd=ROOT, check=True, timeout=120)
