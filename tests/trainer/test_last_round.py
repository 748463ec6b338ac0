"""How a collaboration ends: with as many rounds as its recipe says, and a measured checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.rehearsals import make_plan
from trainer.commands import main
from trainer.recipe import Finish
from trainer.simulator.ledger import Attempt
from trainer.simulator.plan import Plan
from trainer.simulator.run import Rehearsal
from trainer.wire import CheckpointWritten, HeldOut, Wish

MINUTE_S = 60.0


class Told(Rehearsal):
    """Also keeps which checkpoints were written, and which of them were measured."""

    def __init__(self, plan: Plan, tell: Callable[[Attempt], None] = lambda attempt: None) -> None:
        super().__init__(plan, tell)
        self.written: list[int] = []
        self.measured: list[int] = []
        add_up = self.ledger.report

        def report(name: str, body, at_s: float) -> None:
            if isinstance(body, CheckpointWritten):
                self.written.append(body.round)
            elif isinstance(body, HeldOut):
                self.measured.append(body.round + 1)
            add_up(name, body, at_s)

        self.ledger.report = report  # type: ignore[method-assign]


def make(folder: Path, finish: int, **changes) -> Plan:
    """No site ends it: it goes on for a minute, in which there would be nearly twenty rounds."""
    made = make_plan(folder, **{"peers": 3, "rounds": 99, "longest_s": MINUTE_S, **changes})
    timing = made.recipe.round.model_copy(update={"checkpoint_every": 3})
    recipe = made.recipe.model_copy(update={"round": timing, "finish": Finish(rounds=finish)})
    return replace(made, recipe=recipe)


@pytest.mark.parametrize(("finish", "kept"), [(6, [3, 6]), (4, [3, 4])])
def test_after_the_last_round_none_begins_and_its_checkpoint_is_measured(tmp_path, finish, kept):
    rehearsal = Told(make(tmp_path, finish))
    figures = rehearsal.run()
    assert not figures["reached"] and figures["attempts"] == {"clean": finish}
    assert {life.round for life in rehearsal.lives} == {finish}
    assert rehearsal.written == rehearsal.measured == kept
    assert figures["samples"]["released"] == 0 and figures["not_ended"] == []


def test_who_comes_and_goes_after_the_last_round_has_its_model_and_begins_no_other(tmp_path):
    rehearsal = Told(make(tmp_path, 4, peers=5, leaves_per_minute=0.8))
    figures = rehearsal.run()
    assert figures["joined"] >= 7
    assert len(rehearsal.ledger.witnessed) == 4 and figures["samples"]["released"] == 0
    assert {life.round for life in rehearsal.lives} == {4}
    assert rehearsal.written == rehearsal.measured == [3, 4]


@pytest.mark.parametrize("finish", [0, 5])
def test_the_last_checkpoint_is_measured_too_where_the_site_ends_it(tmp_path, finish):
    def end(attempt: Attempt) -> None:
        if attempt.round == 4:
            for life in rehearsal.lives:
                life.wishes.wish = Wish.FINISH

    rehearsal = Told(make(tmp_path, finish), end)
    figures = rehearsal.run()
    assert figures["not_ended"] == []
    assert rehearsal.written == rehearsal.measured
    assert rehearsal.written[0] == 3 and rehearsal.written[-1] == rehearsal.coordinator.round
    assert rehearsal.coordinator.round == finish or (not finish and rehearsal.coordinator.round > 4)


def test_a_recipe_is_not_rehearsed_beyond_its_last_round(tmp_path, capsys):
    recipe = make(tmp_path, 2).recipe
    path = tmp_path / "recipe.json"
    path.write_text(recipe.model_dump_json())
    words = ["simulate", str(path), "--peers", "3", "--rounds", "5"]
    assert main(words) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["reached"] and figures["rounds"] == 2
