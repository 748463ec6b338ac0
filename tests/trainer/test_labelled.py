"""Labelled data in files: what is read, and what is refused with its line."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.trainer.evaluated import write_classes
from trainer.evaluation import classifying, tagging
from trainer.evaluation.labelled import (
    DataError,
    Example,
    Sentence,
    Split,
    are_spans,
    examples,
    labels_of,
    read,
    sentences,
)


def written(folder, content, name="data"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_words_come_first_and_tags_last_whatever_is_between_them(tmp_path):
    text = "\ufeff-DOCSTART- -X- O\n\nঢাকা NN B-LOC\nis O\n\n\nসে VB NP O\r\n"
    found = sentences(written(tmp_path, text))
    assert found == [Sentence(("ঢাকা", "is"), ("B-LOC", "O")), Sentence(("সে",), ("O",))]
    tabs = "New York\tB-LOC\nক\u200dখ\tO\n\u3000\tO\n"
    assert sentences(written(tmp_path, tabs))[0].words == ("New York", "ক\u200dখ", "\u3000")


def test_texts_may_have_commas_newlines_and_quotes(tmp_path):
    csv = 'id,label,text\n1,a,"x, ""y""\nz"\n\n2,b,w\n'
    assert examples(written(tmp_path, csv, "d.csv")) == [Example('x, "y"\nz', "a"), ("w", "b")]
    jsonl = '{"text": "x\\u2028y", "label": 1}\n\n{"label": "b", "text": "w", "id": 3}\n'
    assert examples(written(tmp_path, jsonl)) == [Example("x\u2028y", "1"), ("w", "b")]


@pytest.mark.parametrize(
    ("reads", "name", "content", "said"),
    [
        (sentences, "d", "a O\nb\n", "line 2, is no word with its tag: 'b'"),
        (sentences, "d", "a\tO\n# text = a b\n", "line 2, is no word with its tag"),
        (sentences, "d", "a\tO\n\tO\n", "line 2, is no word with its tag"),
        (sentences, "d", b"a O\nb\xff O\n", "line 2, is not UTF-8"),
        (sentences, "d", "\n\n", "is empty"),
        (
            sentences,
            "d",
            '\n{"text": "a b"}\n{"text": "c"}\n',
            "line 2, is JSON. Tags",
        ),
        (examples, "d.csv", "text;label\n", "line 1: the columns text and label are not"),
        (examples, "d.csv", "", "line 1: the columns"),
        (examples, "d.csv", "text,label\na,b\na,b,c\n", "line 3, has 3 columns, and its header 2"),
        (examples, "d.csv", "text,label\na,\n", "line 2: the text or its label is empty"),
        (examples, "d.csv", 'text,label\n"a,b\n', "line 2: unexpected end of data"),
        (examples, "d", '{"text": "a", "label": "b"}\n{"text": "a"}\n', "line 2, is no {"),
        (examples, "d", "[1]\n", "line 1, is no {"),
        (examples, "d", "x\n", "line 1, is no {"),
        (examples, "d", '{"text": ["a"], "label": "b"}\n', "line 1: text is a text"),
        (examples, "d", "\n", "is empty"),
    ],
)
def test_bad_data_are_refused_in_words_with_their_line(tmp_path, reads, name, content, said):
    with pytest.raises(DataError) as refused:
        reads(written(tmp_path, content, name))
    assert said in str(refused.value)
    assert str(tmp_path / name) in str(refused.value)


def test_a_fifth_of_one_file_is_the_test_and_the_same_in_every_run(tmp_path):
    file = write_classes(tmp_path / "d.csv", 50)
    split = read([file], examples)
    assert (len(split.train), len(split.test)) == (40, 10)
    assert split == read([file], examples)
    assert Counter([*split.train, *split.test]) == Counter(examples(file))


def test_a_folder_has_one_file_to_learn_from_and_one_for_the_test(tmp_path):
    write_classes(tmp_path / "train.csv", 8)
    with pytest.raises(DataError, match=r"has 0 files test\.\*"):
        read([tmp_path], examples)
    write_classes(tmp_path / "test.csv", 4, seed=1)
    split = read([tmp_path], examples)
    assert (len(split.train), len(split.test)) == (8, 4)
    assert split == read([tmp_path / "train.csv", tmp_path / "test.csv"], examples)
    with pytest.raises(DataError, match="3 files"):
        read([tmp_path / "train.csv"] * 3, examples)
    with pytest.raises(DataError, match="has one row"):
        read([written(tmp_path, "text,label\na,b", "one.csv")], examples)


def test_tags_of_spans_are_known_by_their_form():
    assert are_spans(["O", "B-PER", "I-PER"])
    assert not are_spans(["O"]) and not are_spans(["NOUN", "O"])


def test_one_label_alone_is_nothing_to_learn():
    assert labels_of(["a", "b"], ["c"]) == ["a", "b", "c"]
    with pytest.raises(DataError, match="all that is learnt from is a"):
        labels_of(["a", "a"], ["b"])


def test_c03_baselines_know_a_word_in_both_spellings():
    one, other = "বা\u09dc\u09bf", "বা\u09a1\u09bc\u09bf"  # the same word, house
    sentences_of = [[Sentence((word, "x"), ("B-LOC", "O"))] * 9 for word in (one, other)]
    found = tagging.guesses(Split(*sentences_of))
    assert found["each word's most frequent tag"] == [["B-LOC", "O"]] * 9
    rows = [[Example(word, "a"), Example("x", "b")] * 9 for word in (one, other)]
    guessed = classifying.guesses(Split(*rows))
    assert guessed["TF-IDF of characters and logistic regression"] == ["a", "b"] * 9
