"""A model folder pushed into a repository of a hub, and what is said where that fails."""

from __future__ import annotations

import json

import pytest

from tests.hub import TOKEN, hub
from trainer.agent import pushing
from trainer.commands import main


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "model"
    (place / "adapter").mkdir(parents=True)
    (place / "model.safetensors").write_bytes(bytes(range(256)) * 5000)
    (place / "adapter" / "adapter_model.safetensors").write_bytes(b"adapter")
    (place / "config.json").write_text("{}")
    (place / "README.md").write_text('---\ntags:\n- "x"\n---\n\n# A model\n')
    return place


def content_of(folder):
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def pushed(folder, server, *words, name="owner/tiny"):
    report = folder.parent / "report.json"
    given = ["push", str(folder), name, "--hub", server, "--report", str(report), *words]
    return main(given), json.loads(report.read_text()) if report.exists() else None


def test_all_files_arrive_in_one_commit_and_a_second_push_sends_what_is_new(
    folder, monkeypatch, capsys
):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with hub() as server:
        code, report = pushed(folder, server.url, "--private")
        assert code == 0, capsys.readouterr().err
        assert report == {"address": f"{server.url}/owner/tiny"}
        assert server.repositories == {"owner/tiny": content_of(folder)}
        assert server.private == {"owner/tiny": True} and server.commits == 1
        assert server.steps.count("upload") == 2
        (folder / "README.md").write_text("# Another\n")
        assert pushed(folder, server.url)[0] == 0
        assert server.steps.count("upload") == 2 and server.commits == 2
        assert server.repositories == {"owner/tiny": content_of(folder)}
    said = capsys.readouterr()
    assert TOKEN not in said.out + said.err


@pytest.mark.parametrize(
    ("step", "status", "words"),
    [
        ("create", 401, "does not know the token"),
        ("create", 403, "may not write there"),
        ("preupload", 404, "no such owner or repository"),
        ("batch", 403, "may not write there"),
        ("commit", 409, "push it again"),
    ],
)
def test_a_refusal_is_told_in_words_without_the_token(
    folder, monkeypatch, capsys, step, status, words
):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with hub() as server:
        server.fault[step] = status
        code, report = pushed(folder, server.url)
        assert server.commits == (step == "commit")
        said = capsys.readouterr()
        assert code == 1 and words in report["problem"] and words in said.err
        assert TOKEN not in said.out + said.err + json.dumps(report)
        assert "Traceback" not in said.err
        server.fault.clear()
        assert pushed(folder, server.url)[0] == 0


def test_a_hub_that_is_not_there_a_wrong_name_and_no_token_are_told(folder, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(pushing, "MOST_SAID", 500)
    with hub() as server:
        gone = server.url
        code, report = pushed(folder, gone, name="owner/../tiny")
        assert code == 1 and "cannot take this" in report["problem"]
    code, report = pushed(folder, gone)
    assert code == 1 and f"{gone} cannot be reached" in report["problem"]
    monkeypatch.delenv("HF_TOKEN")
    assert pushed(folder, gone)[0] == 1
    assert "set HF_TOKEN" in capsys.readouterr().err
