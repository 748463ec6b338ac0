"""`python -m trainer evaluate --report`: no other file is overwritten, and no result lost."""

from __future__ import annotations

import json

import pytest

from tests.trainer.evaluated import make_model, write_classes, write_tags
from tests.trainer.test_evaluate import evaluated, write_text
from trainer.evaluation.report import Report
from trainer.launcher.place import Unusable


@pytest.mark.parametrize("task", ["perplexity", "tags", "classes"])
@pytest.mark.parametrize(
    "content",
    [
        b"\x10\0\0\0\0\0\0\0{}",  # as a checkpoint begins
        b'{"version": "1.0", "model": {}}',
        b"my notes",
        b"",
        b'{"complete": true, "doing": ""}',
    ],
)
def test_a_file_that_is_no_report_is_refused_at_once_and_stays_as_it_is(
    tmp_path, capsys, task, content
):
    (tmp_path / "mine").write_bytes(content)
    words = [task, tmp_path / "no-model", tmp_path / "no-data", "--report", tmp_path / "mine"]
    assert f"{tmp_path / 'mine'} is no report" in evaluated(capsys, *words, fails=True)
    assert (tmp_path / "mine").read_bytes() == content


@pytest.mark.parametrize("place", ["none/report.json", "notes.txt/report.json", "/proc/r.json"])
def test_where_no_report_can_be_written_nothing_is_begun(tmp_path, capsys, place):
    (tmp_path / "notes.txt").write_text("mine")
    words = ["perplexity", tmp_path / "no-model", tmp_path / "no-data"]
    said = evaluated(capsys, *words, "--report", tmp_path / place, fails=True)
    assert f"No report can be written to {tmp_path / place}: " in said
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_in_place_of_a_report_is_refused(tmp_path, capsys):
    words = ["perplexity", tmp_path / "no-model", tmp_path / "no-data", "--report", tmp_path]
    assert f"{tmp_path} is no report" in evaluated(capsys, *words, fails=True)


def test_a_report_of_another_evaluation_is_replaced(tmp_path, capsys):
    folder, report = make_model(tmp_path / "model"), tmp_path / "report.json"
    for task, data in (
        ("perplexity", write_text(tmp_path)),
        ("tags", write_tags(tmp_path / "names.conll", 20)),
        ("classes", write_classes(tmp_path / "kinds.csv", 20)),
        ("perplexity", write_text(tmp_path)),
    ):
        more = ["--epochs", 1, "--most-tokens", 20, "--report", report]
        found = evaluated(capsys, task, folder, data, *more)
        assert json.loads(report.read_text())["result"] == found


@pytest.mark.parametrize("happens", ["folder gone", "folder in its place"])
def test_a_report_that_cannot_be_written_any_more_is_told_in_words(tmp_path, happens):
    path = tmp_path / "reports" / "report.json"
    path.parent.mkdir()
    report = Report(path)
    if happens == "folder gone":
        path.parent.rmdir()
    else:
        path.mkdir()
    with pytest.raises(Unusable) as refused:
        report.end({})
    assert str(refused.value).startswith(f"No report can be written to {path}: ")
    assert "--home" not in str(refused.value)
    assert not list(tmp_path.glob("reports/.*"))
