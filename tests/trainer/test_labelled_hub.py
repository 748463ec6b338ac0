"""Labelled data of a hub by their name, in the forms that hubs have them."""

from __future__ import annotations

import pytest

from tests.trainer.evaluated import make_model
from tests.trainer.hub_stand_in import put, serving
from tests.trainer.test_evaluate import evaluated
from trainer.evaluation import hub as reader
from trainer.evaluation.labelled import DataError, Example, Sentence
from trainer.sources.base import SourceUnavailable

NAMES = ["O", "B-PER", "I-PER", "B-LOC"]
WORDS = [["রহিম", "ঢাকা", "গেল"], ["ক\u200dখ"], []]
TAGS = [[1, 3, 0], [0], []]
SENTENCES = [
    Sentence(("রহিম", "ঢাকা", "গেল"), ("B-PER", "B-LOC", "O")),
    Sentence(("ক\u200dখ",), ("O",)),
]
README = """---
license: unknown
dataset_info:
- config_name: en
  features:
  - name: ner_tags
    sequence:
      class_label:
        names: {'0': X, '1': Y, '2': Z, '3': W}
- config_name: bn
  features:
  - name: tokens
    sequence: string
  - name: ner_tags
    sequence:
      class_label:
        names:
          '0': O
          '1': B-PER
          '2': I-PER
          '3': B-LOC
---
# WikiANN
"""


@pytest.fixture
def hub(monkeypatch):
    with serving(monkeypatch) as found:
        yield found


def read(*given):
    return reader.read(*given, pause_s=0.01)


def test_wikiann_is_read_with_the_names_of_its_tags_from_its_files(hub):
    label = {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"}
    more = {"langs": [["bn"] * len(row) for row in WORDS]}
    for split in ("train", "test"):
        for _ in range(2):  # files of one split
            known = {"tokens": WORDS, "ner_tags": TAGS, **more}
            put(hub, "org/wikiann", split, features={"ner_tags": label}, **known)
    found = read(["org/wikiann", "bn"], "tags")
    assert found.train == found.test == SENTENCES * 2
    assert found.left_out == 4  # rows without a word
    assert not [path for path, _ in hub.asked if "README" in path]


def test_names_that_the_files_lack_are_in_the_head_of_the_readme(hub):
    for split in ("train", "test"):
        put(hub, "org/wikiann", split, tokens=WORDS, ner_tags=TAGS)
    with pytest.raises(DataError, match=r"row 1 of train of org/wikiann: its tags are numbers"):
        read(["org/wikiann", "bn"], "tags")
    hub.pages["/datasets/org/wikiann/raw/main/README.md"] = README.encode()
    assert read(["org/wikiann", "bn"], "tags").test == SENTENCES


@pytest.mark.parametrize(
    "head",
    [
        "dataset_info: [justastring]",
        "dataset_info: justastring",
        "dataset_info: {config_name: bn, features: null}",
        "dataset_info: {config_name: bn, features: [tokens, ner_tags]}",
        "dataset_info: {config_name: bn, features: 5}",
        "dataset_info: &a [{config_name: bn, features: [&b {name: ner_tags, sequence: *b}]}]",
        "[dataset_info]",
        "dataset_info: " + "[" * 5000,
        "made: 2024-13-99",
    ],
)
def test_a_head_of_another_form_names_no_tags(hub, head):
    for split in ("train", "test"):
        put(hub, "org/wikiann", split, tokens=WORDS, ner_tags=TAGS)
    page = f"---\n{head}\n---\n# WikiANN\n"
    hub.pages["/datasets/org/wikiann/raw/main/README.md"] = page.encode()
    with pytest.raises(DataError, match="its tags are numbers, and neither the file nor"):
        read(["org/wikiann", "bn"], "tags")


def test_news_are_read_by_their_columns_and_splits(hub):
    features = {"category": {"names": ["কলকাতা", "খেলা"], "_type": "ClassLabel"}}
    known = {"news": ["এক", " ", "দুই", None], "category": [1, 0, 0, 1]}
    for split in ("train", "validation"):
        put(hub, "org/news", split, config="sna", features=features, **known)
    found = read(["org/news", "sna", "train", "validation", "news,category"], "classes")
    assert found.train == found.test == [Example("এক", "খেলা"), Example("দুই", "কলকাতা")]
    assert found.left_out == 4


def test_of_one_split_a_fifth_is_the_test_and_names_may_be_in_the_rows(hub):
    rows = {"text": [f"t{n}" for n in range(10)], "label": ["a", "b"] * 5}
    put(hub, "org/one", "train", config="default", **rows)
    found = read(["org/one", "default", "train"], "classes")
    assert (len(found.train), len(found.test)) == (8, 2)
    assert {row.label for row in found.train} == {"a", "b"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["org/x", "absent,label"], "has no column absent, but text, label, secret"),
        (["org/x", "text,secret"], "row 1 of train of org/x: -1 is no label"),
        (["org/x", "label,text"], "row 1 of train of org/x: 0 is no text"),
        (["org/x", "text,label,x"], "two columns, like text,label"),
        (["a,b"], "a,b names no data set: name: as org/name or name, each at most 96 letters"),
        (["org/x@main"], "org/x@main names no data set: revision: 40 hex digits (0-9, a-f)"),
        (["org/x", "a/b"], "org/x a/b names no data set: config: at most 120 letters"),
        (["org/x", "default", "a", "b", "c"], "one to learn from and one for the test"),
        (["org/x", "empty"], "train of org/x has no row with a word"),
    ],
)
def test_what_is_wrong_with_a_data_set_is_told_with_its_row(hub, words, said):
    rows = {"text": ["a"], "label": [0]}
    for split in ("train", "test"):
        put(hub, "org/x", split, config="default", **rows, secret=[-1])
        put(hub, "org/x", split, config="empty", text=[""], label=[0])
    with pytest.raises(DataError) as refused:
        read(words, "classes")
    assert said in str(refused.value)


def test_a_data_set_that_the_hub_has_not_is_told_with_its_address(hub):
    with pytest.raises(SourceUnavailable, match=r"org/none/parquet/default/train: HTTP Error 404"):
        read(["org/none"], "tags")


def test_a_model_is_evaluated_on_a_data_set_of_a_hub(hub, tmp_path, capsys):
    folder = make_model(tmp_path / "model")
    features = {"ner_tags": {"names": NAMES, "_type": "ClassLabel"}}
    known = {"tokens": WORDS * 5, "ner_tags": TAGS * 5}
    for split in ("train", "test"):
        put(hub, "org/wikiann", split, features=features, **known)
    words = ["tags", folder, "hub:org/wikiann", "bn"]
    found = evaluated(capsys, *words, "--epochs", 1)
    assert found["metric"] == "span_f1" and found["data"]["rows without a word"] == 10
    assert "two columns" in evaluated(capsys, *words, "x,", fails=True)
    assert "no column x" in evaluated(capsys, *words, "x,y", fails=True)
    assert "one text" in evaluated(capsys, "perplexity", folder, "hub:org/wikiann", fails=True)
