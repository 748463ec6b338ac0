"""The launcher of a collaboration that trains on volunteers' own texts asks where they are."""

from __future__ import annotations

import json

import pytest

from tests.trainer.terminal import Terminal
from tests.trainer.volunteer import CODE
from trainer.launcher.own_texts import FILENAME

RUN = """
import json, os, runpy, sys
os.environ.update(json.loads(sys.argv.pop()))
runpy.run_path(sys.argv.pop(), run_name="__main__")
"""


@pytest.fixture
def site(launcher_site):
    return launcher_site


@pytest.fixture
def volunteer(volunteer):
    """With an environment that is there."""
    volunteer.use_this_python()
    volunteer.download(CODE, own_texts=True)
    return volunteer


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "my notes.txt"
    path.write_text("a note\n")
    return path


def remembered(volunteer):
    return [json.loads(path.read_text())["path"] for path in volunteer.home.rglob(FILENAME)]


def test_it_says_which_files_are_read_and_keeps_the_path_out_of_the_agents_command(
    volunteer, notes, site
):
    code, out = volunteer.start("--yes", "--data", str(notes))
    assert code == 0, out
    assert "files only those are read that you name; their text is not sent." in out
    assert "Your files are not read" not in out
    assert "my notes" not in out.split("agent: ")[1]
    assert remembered(volunteer) == [str(notes)]
    (file,) = volunteer.home.rglob(FILENAME)
    assert file.stat().st_mode & 0o777 == 0o600
    assert volunteer.start("--yes")[0] == 0  # it is not asked again
    assert not any("my" in path for path in site.asked)


def test_without_a_terminal_it_wants_the_option_and_a_place_that_is_there(volunteer, site, notes):
    code, out = volunteer.start("--yes", "--data", str(notes.parent / "none"))
    assert code == 1 and "cannot be read (No such file or directory)" in out
    assert site.codes[CODE] == "good"
    code, out = volunteer.start("--yes")
    assert code == 1 and "start with --data PATH" in out and "agent:" not in out
    assert volunteer.start("--data", str(notes))[0] == 0


def test_at_a_terminal_it_asks_and_nothing_is_read_without_an_answer(volunteer, notes):
    for typed, words in (("", "Nothing was read"), (str(notes), "agent: ")):
        terminal = Terminal()
        env = json.dumps(volunteer.env)
        terminal.start(RUN, str(volunteer.launcher), env)
        try:
            if not typed:
                terminal.until("Go on?")
                terminal.type("y\n")
            terminal.until("They stay on this computer.")
            terminal.until("Path of your texts")
            terminal.type(f"{typed}\n")
            terminal.until(words)
            assert terminal.end() == 0
        finally:
            terminal.switch_off()
        assert remembered(volunteer) == ([typed] if typed else [])
