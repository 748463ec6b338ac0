"""The normal form: what it changes, what it keeps, and that doing it twice changes nothing more."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.text.normal_form import normal_form
from trainer.tokenizing import STEPS

NORMAL = normal_form()
JOINERS = "\u200c\u200d"
EMOJI = "👩\u200d👩\u200d👧 👍🏽 🏳\ufe0f\u200d🌈 🇧🇩 1\ufe0f⃣"
SCRIPTS = {
    "Bengali": st.characters(min_codepoint=0x0980, max_codepoint=0x09FF),
    "Hindi": st.characters(min_codepoint=0x0900, max_codepoint=0x097F),
    "Japanese": st.characters(min_codepoint=0x3000, max_codepoint=0x30FF),
    "Arabic": st.characters(min_codepoint=0x0600, max_codepoint=0x06FF),
    "Russian": st.characters(min_codepoint=0x0400, max_codepoint=0x045F),
    "signs": st.sampled_from(" \t\u00a0|:।॥,.-0১" + JOINERS),
    "emoji": st.sampled_from(EMOJI),
}
TEXTS = st.text(st.one_of(*SCRIPTS.values()), max_size=40)
LATIN = st.text(st.characters(max_codepoint=0x03FF, exclude_categories=["Cs"]), max_size=20)
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# What reading bytes with errors="replace" makes of broken UTF-8.
BROKEN = st.binary(max_size=40).map(lambda raw: raw.decode(errors="replace"))
SUBSETS = st.sets(st.sampled_from(sorted(STEPS)))


def promised(text: str) -> list[str]:
    """Letters, marks and joiners, in a spelling that all equivalent texts share: marks are in one
    order, also where something invisible stood between them."""
    hidden = {c for c in text if unicodedata.category(c) in ("Cf", "Cc") and not c.isspace()}
    seen = "".join(c for c in text if c in JOINERS or c not in hidden)
    plain = unicodedata.normalize("NFKD", seen)
    return [c for c in plain if unicodedata.category(c)[0] in "LM" or c in JOINERS]


@settings(max_examples=400, deadline=None)
@given(st.one_of(TEXTS, LATIN, ANYTHING, BROKEN), SUBSETS)
def test_done_twice_it_changes_nothing_more_whatever_is_left_out(text, without):
    once = normal_form(without).normalize_str(text)
    assert normal_form(without).normalize_str(once) == once


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_every_letter_mark_and_joiner_stays(text):
    """But a visarga that was written as a colon, which comes to them."""
    kept = promised(normal_form({"visarga"}).normalize_str(text))
    assert kept == promised(text)
    with_visarga = promised(NORMAL.normalize_str(text))
    assert [c for c in with_visarga if c != "ঃ"] == [c for c in kept if c != "ঃ"]
    assert 0 <= with_visarga.count("ঃ") - kept.count("ঃ") <= text.count(":")


@settings(max_examples=200, deadline=None)
@given(st.one_of(TEXTS, BROKEN))
def test_no_control_character_and_no_double_space_is_left(text):
    normal = NORMAL.normalize_str(text)
    assert "  " not in normal and normal == normal.strip()
    assert not [c for c in normal if unicodedata.category(c) == "Cc" or c in "\ufffd\ufeff▁"]


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("ভাত খাই |", "ভাত খাই ।"),
        ("ভাত খাই৷", "ভাত খাই।"),
        ("শেষ॥ শেষ।। শেষ|| শেষ ৷৷", "শেষ॥ শেষ॥ শেষ॥ শেষ ॥"),
        ("a | b || c", "a | b || c"),
        ("দু:খ", "দুঃখ"),
        ("বস্তুত: তাই", "বস্তুতঃ তাই"),
        ("১০:৩০ a:b এবং:", "১০:৩০ a:b এবং:"),
        ("ক\u09c7\u09be ক\u09c7\u09d7", "কো কৌ"),
        ("  দুটি\u00a0\t শব্দ \n", "দুটি শব্দ"),
        ("ﬁne \uff21\uff22 ①", "fine AB 1"),
        ("Café Ωδή naïve", "Cafe Ωδη naive"),
        ("й ё が أ हिन्दी क़ चाँद", "й ё が أ हिन्दी क\u093c चाँद"),
        ("क्\u200dष র\u200c্য", "क्\u200dष র\u200c্য"),
        ("a\u200bb soft\u00adhyphen \ufeffBOM \u0000NUL", "a b softhyphen BOM NUL"),
    ],
)
def test_a_text_is_written_as_it_should_be(written, normal):
    assert NORMAL.normalize_str(written) == unicodedata.normalize("NFC", normal)


@pytest.mark.parametrize("word", ["বা\u09dcি", "আষা\u09dd", "হ\u09df"])
def test_c03_two_spellings_become_one_also_without_nfkc(word):
    other = unicodedata.normalize("NFD", word)
    assert word != other
    for without in ((), ("nfkc",), ("nfkc", "accents")):
        form = normal_form(without)
        assert form.normalize_str(word) == form.normalize_str(other) == other


def test_c02_no_mark_of_bengali_is_lost():
    block = map(chr, range(0x0980, 0x0A00))
    marks = [c for c in block if unicodedata.category(c) in ("Mn", "Mc")]
    for mark in marks:
        expected = unicodedata.normalize("NFC", f"ক{mark}ত")
        assert NORMAL.normalize_str(f"ক{mark}ত") == expected


def test_emoji_stay_whole():
    kept = NORMAL.normalize_str(EMOJI)
    assert kept == EMOJI


def test_a_step_can_be_left_out():
    assert normal_form({"visarga"}).normalize_str("দু:খ |") == "দু:খ ।"
    assert normal_form({"accents"}).normalize_str("Café") == "Café"
