"""Before a device joins, its owner names texts, sees what they are and what leaves, and agrees."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.recipe_site import RecipeSite
from tests.trainer.terminal import ROOT, Terminal
from trainer.agent.own_texts import NOT_NAMED, agree
from trainer.launcher.own_texts import FILENAME, remembered, usable
from trainer.launcher.place import Unusable
from trainer.recipe import Text

RUN = "import sys\nfrom trainer.commands import main\nsys.exit(main(sys.argv[1:]))\n"


@pytest.fixture
def site(tmp_path):
    made = RecipeSite(tmp_path).start()
    yield made
    made.stop()


@pytest.fixture
def seat(site, tmp_path):
    return site.seat(tmp_path / "home")


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "my notes"
    folder.mkdir()
    lines = [f"note {number} of mine\n" for number in range(100)]
    (folder / "a.txt").write_text("".join(lines))
    (folder / "b.jsonl").write_text('{"text": "one more"}\n{"text": 1}\n')
    (folder / "c.pdf").write_bytes(b"%PDF")
    return folder


def words_of(site, home, *more):
    words = ["run", "--site", site.url, "--home", str(home), "--plain", "--threads", "1"]
    return [*words, *more]


def test_at_a_terminal_it_asks_shows_and_joins_only_after_a_yes(site, seat, notes, tmp_path):
    for answer, joins in (("n", 0), ("y", 1)):
        terminal = Terminal()
        terminal.start(RUN, *words_of(site, tmp_path / "home"))
        try:
            if joins == 0:
                terminal.until("Path of your texts")
                terminal.type(f"{tmp_path}/none\n")
                terminal.until("cannot be read (No such file or directory)")
            terminal.until("Path of your texts")
            terminal.type(f"'{notes}'\n")
            terminal.until("101 documents in 2 files")
            terminal.until("1 lines or rows could not be read and are skipped")
            terminal.until("c.pdf is left out")
            terminal.until("What leaves this computer, each round:")
            terminal.until("Train on them?")
            terminal.type(f"{answer}\n")
            if joins:
                terminal.until("May the site know the loss on those kept back, too?")
                terminal.type("\n")
            assert terminal.end() == joins  # this site refuses every join
        finally:
            terminal.switch_off()
        assert site.joins == joins
    kept = seat.folder / FILENAME
    assert kept.stat().st_mode & 0o777 == 0o600
    assert remembered(seat.folder) == (notes, site.recipe.sha256(), False)


def test_without_a_terminal_the_path_is_an_option_and_is_remembered(site, seat, notes, tmp_path):
    def run(*more):
        words = words_of(site, tmp_path / "home", *more)
        command = [sys.executable, "-m", "trainer", *words]
        return subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    done = run()
    assert done.returncode == 1 and NOT_NAMED in done.stderr and site.joins == 0
    assert "Your texts: 101" in run(str(notes)).stdout
    assert "Your texts: 101" in run().stdout
    assert site.joins == 2


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.txt", b"\n \n", "0 documents in 1 files"),
        ("x.csv", b"id\n1\n", "x.csv is left out: it has the columns id"),
        ("x.jsonl", b"{\n[]\n", "2 lines or rows could not be read"),
    ],
)
def test_texts_without_a_sample_are_told_and_the_device_does_not_join(
    site, seat, tmp_path, capsys, name, content, words
):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Unusable, match="this device does not join"):
        agree(seat, str(tmp_path / name), asks=False)
    assert words in capsys.readouterr().out
    assert remembered(seat.folder).path is None


def test_of_many_files_that_are_left_out_the_first_are_named(site, seat, notes, capsys):
    for number in range(30):
        (notes / f"photo-{number:02}.jpg").write_bytes(b"")
    agree(seat, str(notes), asks=False)
    said = capsys.readouterr().out
    assert "photo-08.jpg is left out" in said and "photo-09" not in said
    assert "  21 more files are left out; the log file names them." in said


def test_what_leaves_is_told_in_megabytes_of_this_model(site, seat, notes, capsys):
    agree(seat, str(notes), asks=False)
    said = capsys.readouterr().out
    assert "an update of the model, 0.1 MB, worked out from your texts" in said
    assert "What does not: the texts, their tokens, the names of files and folders." in said
    assert "are kept back" in said


def test_a_new_recipe_is_asked_about_again_and_the_same_one_is_not(site, seat, notes, monkeypatch):
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "y")
    agreed = replace(seat, own_texts=notes, shares_own=True)
    assert agree(seat, str(notes), asks=True) == agreed
    assert agree(seat, "", asks=True) == agree(seat, str(notes), asks=False) == agreed
    assert [question[:8] for question in asked] == ["Train on", "May the "]
    site.recipe = site.recipe.model_copy(update={"seed": 1})
    agree(seat, "", asks=True)
    assert len(asked) == 4


def test_nobody_is_asked_about_a_loss_that_cannot_be_measured(
    site, seat, tmp_path, monkeypatch, capsys
):
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "y")
    (tmp_path / "few.txt").write_text("one\ntwo\n")
    assert agree(seat, str(tmp_path / "few.txt"), asks=True).shares_own is False
    assert asked == ["Train on them? [y/N] "]
    assert "too few to keep some back" in capsys.readouterr().out


def test_while_the_site_is_away_what_was_agreed_to_goes_on_and_nothing_else(site, seat, notes):
    agree(seat, str(notes), asks=False)
    site.stop()
    assert agree(seat, "", asks=False) == replace(seat, own_texts=notes)
    assert agree(seat, str(notes.parent), asks=False) == seat
    (seat.folder / FILENAME).unlink()
    assert agree(seat, str(notes), asks=False) == seat
    site.start()


def test_a_collaboration_on_the_sites_texts_reads_none_of_the_volunteers(site, seat, notes, capsys):
    text = Text(kind="site", file=site.recipe.tokenizer.file)
    site.recipe = site.recipe.model_copy(update={"texts": (text,)})
    assert agree(seat, str(notes), asks=False) == seat
    assert "yours are not read" in capsys.readouterr().out
    assert not (seat.folder / FILENAME).exists()


def test_a_place_that_cannot_be_read_is_refused_in_words(tmp_path):
    with pytest.raises(Unusable, match="No such file"):
        usable(str(tmp_path / "none"))
    with pytest.raises(Unusable, match="is an empty folder"):
        usable(str(tmp_path))
    named = tmp_path / "with blanks.txt"
    named.write_text("x")
    assert usable(str(named).replace(" ", "\\ ")) == usable(f'"{named}"') == named


@pytest.mark.parametrize(
    "content", ["{", "[]", json.dumps({"path": 1, "agreed": ""}), '{"path": "x"}']
)
def test_a_damaged_memory_of_the_path_says_what_to_do(tmp_path: Path, content):
    (tmp_path / FILENAME).write_text(content)
    with pytest.raises(Unusable, match=r"is damaged\. Delete it, and name your texts again"):
        remembered(tmp_path)
