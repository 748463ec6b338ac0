"""A volunteer's own texts: every format becomes documents, and the held-out ones stay the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pydantic import ValidationError

from tests.trainer.models import make_recipe
from trainer.data.survey import survey
from trainer.families.base import CAUSAL, MASKED
from trainer.sources.base import SourceUnavailable
from trainer.sources.formats import Unreadable, read
from trainer.sources.private import FEWEST, PrivateSource, files_of
from trainer.text.tokenizer import Tokenizer, train_tokenizer

NOTES = [f"note {number} is about the number {number * number}" for number in range(400)]
CHAT = [{"role": "user", "content": "two and two?"}, {"role": "assistant", "content": "four"}]
TOLD = "user: two and two?\nassistant: four"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    train_tokenizer(NOTES, path, 300)
    return Tokenizer(path, 300)


def folder_of(path: Path, notes: list[str] = NOTES) -> Path:
    """The same notes in two files, one of them in a folder of its own."""
    (path / "more").mkdir(parents=True)
    (path / "one.txt").write_text("\n".join(notes[::2]))
    rows = "".join(json.dumps({"text": note}) + "\n" for note in notes[1::2])
    (path / "more" / "two.jsonl").write_text(rows)
    return path


def table(path: Path, **columns: list[object]) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"texts": ({"kind": "private", "path": "/home/me"},)}, "name no place"),
        ({"texts": ({"kind": "private"}, {"kind": "private"})}, "one is private"),
        ({"held_out": {"kind": "private"}}, "has no private text"),
    ],
)
def test_a_recipe_says_that_texts_are_private_and_not_where(changes, words):
    with pytest.raises(ValidationError, match=words):
        make_recipe(**changes)


@pytest.mark.parametrize(
    ("record", "document"),
    [
        ({"text": " plain "}, "plain"),
        ({"messages": CHAT}, TOLD),
        (
            {"conversations": [{"from": turn["role"], "value": turn["content"]} for turn in CHAT]},
            TOLD,
        ),
        ({"instruction": "add", "input": "1 1", "output": "2"}, "add\n1 1\n2"),
        ({"prompt": "why?", "completion": "so"}, "why?\nso"),
        ({"question": "why?", "context": "", "answer": "so"}, "why?\nso"),
        ({"text": ""}, ""),
        ({"text": 5}, None),
        ({"text": "half a pair \ud800"}, None),
        ({"messages": ["hello"]}, None),
        ({"prompt": "why?"}, None),
        ({"other": "x"}, None),
        (["text"], None),
        ("text", None),
    ],
)
def test_a_json_line_is_a_text_a_chat_or_an_instruction_and_else_it_is_broken(
    tmp_path, record, document
):
    (tmp_path / "x.jsonl").write_text(json.dumps(record) + "\n")
    assert list(read(tmp_path / "x.jsonl")) == [document]


def test_lines_that_are_no_json_or_no_utf8_are_broken_and_the_others_are_read(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "good"}\n{"te\n\xff\n\n' + b"[" * 100_000 + b"\n")
    assert list(read(path)) == ["good", None, None, "", None]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_csv_table_keeps_line_ends_inside_quotes_and_counts_rows_that_are_broken(
    tmp_path, separator
):
    path = tmp_path / "x.csv"
    row = separator.join
    lines = [row(["id", "text"]), row(["1", '"two\nlines"']), "2", row(["3", "last"])]
    path.write_bytes("\r\n".join(lines).encode() + row(["\r\n4", ""]).encode() + b"\xff\r\n")
    assert list(read(path)) == ["two\nlines", None, "last", None]


def test_a_parquet_table_may_hold_texts_chats_or_instructions(tmp_path):
    texts = table(tmp_path / "a.parquet", id=[1, 2, 3], text=["one", None, "three"])
    assert list(read(texts)) == ["one", None, "three"]
    assert list(read(table(tmp_path / "b.parquet", messages=[CHAT]))) == [TOLD]
    pairs = table(tmp_path / "c.parquet", instruction=["add"], output=["2"])
    assert list(read(pairs)) == ["add\n2"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.csv", b"id,body\n1,hello\n", "it has the columns id, body; needed: text"),
        ("x.csv", b"", r"columns \(none\)"),
        ("x.parquet", b"PAR1 no more", "no Parquet file, or it is damaged"),
        ("x.pdf", b"%PDF", r"its ending is none of \.txt \.md"),
    ],
)
def test_a_file_that_is_not_what_its_ending_says_is_refused_in_words(
    tmp_path, name, content, words
):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Unreadable, match=words):
        list(read(tmp_path / name))


def test_the_held_out_documents_are_the_same_after_a_restart_and_under_other_file_names(tmp_path):
    """Also in another process, whose `hash` is another one."""
    folder = folder_of(tmp_path / "a")
    held_out = PrivateSource(folder).held_out()
    assert 0.05 < len(held_out) / len(NOTES) < 0.15
    code = (
        "import sys, pathlib; from trainer.sources.private import PrivateSource;"
        "print(*PrivateSource(pathlib.Path(sys.argv[1])).held_out(), sep='\\n')"
    )
    again = subprocess.check_output([sys.executable, "-c", code, str(folder)], text=True)
    assert again.splitlines() == held_out
    (folder / "one.txt").rename(folder / "z.md")
    assert PrivateSource(folder).held_out() == held_out


def test_a_pass_reads_every_document_once_but_the_held_out_ones_and_begins_anywhere(tmp_path):
    source = PrivateSource(folder_of(tmp_path / "a"))
    passes = [list(source.documents(seed)) for seed in ("1", "2")]
    trained = set(NOTES) - set(source.held_out())
    assert all(len(one) == len(trained) and set(one) == trained for one in passes)
    assert passes[0] != passes[1]
    assert passes[0] == list(source.documents("1"))
    place = {note: number for number, note in enumerate(NOTES)}
    begin = [place[note] for note in passes[0][:20]]
    assert max(begin) - min(begin) > len(NOTES) / 3


def test_of_a_few_documents_none_is_held_out(tmp_path):
    few = PrivateSource(folder_of(tmp_path / "few", NOTES[: FEWEST - 1] * 3))
    assert few.held_out() == []
    assert set(few.documents("x")) == set(NOTES[: FEWEST - 1])
    assert PrivateSource(folder_of(tmp_path / "enough", NOTES[:60])).held_out()


def test_texts_that_are_gone_are_told_without_their_path(tmp_path, caplog):
    source = PrivateSource(tmp_path / "secret-name.txt")
    with pytest.raises(SourceUnavailable) as failure:
        list(source.documents("x"))
    assert "secret-name" not in str(failure.value) and "its log says why" in str(failure.value)
    assert caplog.text.count("secret-name.txt is left out: No such file") == 1


def test_hidden_files_are_no_texts(tmp_path):
    for name in (".git/config.txt", ".secret.txt", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    assert files_of(tmp_path) == [tmp_path / "notes.txt"]


def test_a_survey_counts_what_training_will_see(tmp_path, tokenizer):
    folder = folder_of(tmp_path / "a")
    (folder / "broken.jsonl").write_text('{"no": 1}\n{\n')
    (folder / "photo.jpg").write_bytes(b"\xff")
    (folder / "wrong.csv").write_text("id\n1\n")
    (folder / "extra.txt").write_text("one more line\n")
    source = PrivateSource(folder)
    trained = list(source.documents("x"))
    found = survey(folder, tokenizer, CAUSAL, 16)
    assert found.tokens == sum(len(tokenizer.encode(document)) for document in trained)
    assert found.samples == -(-(found.tokens + len(trained)) // 16)
    assert found.num_documents == len(NOTES) + 1
    assert found.num_held_out == len(source.held_out())
    assert (found.num_files, found.broken, found.is_estimate) == (4, 2, False)
    assert {path.name for path in found.left_out} == {"photo.jpg", "wrong.csv"}
    framed = survey(folder, tokenizer, MASKED, 16)
    assert framed.samples == -(-(found.tokens + len(trained)) // 14)


def test_a_survey_of_nothing_has_no_samples(tmp_path, tokenizer):
    (tmp_path / "empty.txt").write_text("\n\n")
    found = survey(tmp_path, tokenizer, CAUSAL, 16)
    assert (found.num_documents, found.tokens, found.samples) == (0, 0, 0)
