"""Long texts are cut where no reader sees a character torn."""

from __future__ import annotations

from itertools import accumulate

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.sources.cutting import cut, is_border

WHOLE = ["ক্ষ", "স্ত্রী", "চাঁ", "ড়", "र्\u200dय", "👩\u200d👩\u200d👧", "👍🏽", "é", "각", "a", "語"]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.integers(1, 30))
def test_parts_are_the_text_and_none_is_too_long(text, limit):
    parts = list(cut(text, limit))
    assert "".join(parts) == text
    assert all(len(part) <= limit for part in parts)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WHOLE), min_size=1), st.integers(12, 40))
def test_c07_no_conjunct_mark_or_emoji_is_torn(characters, limit):
    borders = set(accumulate(map(len, characters), initial=0))
    text = "".join(characters)
    place = 0
    for part in cut(text, limit):
        assert place in borders
        place += len(part)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Cn"]), min_size=2, max_size=20))
def test_a_border_is_one_of_unicodes_grapheme_borders(text):
    borders = set(accumulate(map(len, regex.findall(r"\X", text))))
    for place in range(1, len(text)):
        assert not is_border(text, place) or place in borders


@pytest.mark.parametrize("text", ["\u09be" * 1000, "🇧" * 1000])
def test_where_there_is_no_border_it_is_cut_all_the_same(text):
    assert max(map(len, cut(text, 100))) == 100


def test_a_flag_is_not_torn():
    assert list(cut("দেশ🇧🇩", 4)) == ["দেশ", "🇧🇩"]


def test_a_space_is_the_better_place():
    assert list(cut("one two three", 9)) == ["one two ", "three"]
