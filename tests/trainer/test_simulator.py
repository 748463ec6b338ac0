"""Rehearsals: the real loop in simulated time, equal by seed, with people who come, go and lie."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.trainer.rehearsals import ROUND_S, make_plan
from trainer import catalogue
from trainer.commands import main
from trainer.engine.coordinator import resume
from trainer.recipe import Choice
from trainer.simulator.clocks import Error
from trainer.simulator.links import KINDS, Link, exchange_s
from trainer.simulator.plan import Plan
from trainer.simulator.run import Rehearsal
from trainer.wire import Role

ROOT = Path(__file__).resolve().parents[2]
SLOW = Link(0.5, 0.5, 0.05)  # an average takes seconds


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Plan:
    return make_plan(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def undisturbed(plan) -> dict:
    return Rehearsal(plan).run()


def balanced(samples: dict) -> bool:
    return samples["in_the_model"] == samples["receipts"] + samples["without_receipt"]


def test_an_undisturbed_swarm_learns_and_every_sample_has_its_receipt(plan, undisturbed):
    assert undisturbed["reached"] and undisturbed["attempts"] == {"clean": plan.rounds}
    assert undisturbed["last_loss"] < undisturbed["first_loss"] - 1
    assert undisturbed["stuck"] == undisturbed["not_ended"] == []
    samples = undisturbed["samples"]
    assert samples["in_the_model"] == samples["receipts"] > 0
    assert samples["without_receipt"] == samples["elsewhere"] == 0


def test_equal_seeds_give_equal_runs_and_others_do_not(plan):
    busy = replace(plan, rounds=4, leaves_per_minute=2.0, liars=("flip",), seed=7)
    first, again, other = (Rehearsal(each).run() for each in (busy, busy, replace(busy, seed=8)))
    assert first == again
    assert first["model_sha256"] != other["model_sha256"]


def test_the_command_gives_the_same_figures_whatever_the_order_of_sets(capsys):
    words = ["simulate", "--toy", "--peers", "4", "--rounds", "2", "--churn", "100", "--seed", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "trainer", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert main(words) == 0
    assert capsys.readouterr().out == done.stdout
    head, *lines, figures = done.stdout.splitlines()
    assert head.split() == ["round", "outcome", "members", "samples", "loss", "seconds"]
    assert [line.split()[:2] for line in lines] == [["0", "clean"], ["1", "clean"]]
    assert json.loads(figures)["rounds"] == 2


def test_a11_people_come_and_go_and_the_swarm_loses_nobody_and_no_sample(plan, undisturbed):
    churn = replace(plan, peers=8, rounds=14, leaves_per_minute=1.0, links=((SLOW, 1.0),))
    figures = Rehearsal(churn).run()
    assert figures["reached"] and figures["killed"] > 2 and figures["left"] > 0
    assert figures["joined"] > churn.peers
    assert figures["stuck"] == figures["not_ended"] == []
    assert balanced(figures["samples"]) and figures["samples"]["elsewhere"] == 0


def test_a_link_that_stalls_makes_partial_averages_and_the_swarm_goes_on(plan):
    stalling = replace(KINDS["lan"], stalls=0.2)  # as fast as the coordinator: all carry a share
    figures = Rehearsal(replace(plan, links=((stalling, 1.0),), seed=2)).run()
    assert figures["attempts"]["partial"] > 0
    assert figures["reached"] and figures["stuck"] == []
    assert balanced(figures["samples"])


def test_a_clock_one_second_off_takes_part(plan):
    figures = Rehearsal(replace(plan, rounds=4, clock_errors=(Error(1.0), Error(-0.4)))).run()
    assert figures["attempts"] == {"clean": 4}
    assert figures["samples"]["elsewhere"] == 0


def test_c12_a_clock_ten_minutes_off_stays_outside_and_harms_nobody(plan, undisturbed):
    figures = Rehearsal(replace(plan, peers=6, clock_errors=(Error(600.0),))).run()
    assert figures["attempts"]["clean"] == plan.rounds
    assert figures["simulated_s"] < 2 * undisturbed["simulated_s"]
    assert balanced(figures["samples"])
    assert figures["last_loss"] == pytest.approx(undisturbed["last_loss"], abs=0.3)


def test_peers_that_only_send_take_part(plan):
    figures = Rehearsal(replace(plan, rounds=4, links=((KINDS["nat"], 1.0),))).run()
    assert figures["attempts"] == {"clean": 4}
    assert balanced(figures["samples"])


def star(plan: Plan, **changes) -> Plan:
    timing = plan.recipe.round.model_copy(update={"averaged_by": "coordinator"})
    recipe = plan.recipe.model_copy(update={"round": timing})
    return replace(plan, recipe=recipe, **changes)


def test_where_the_coordinator_alone_averages_the_same_is_learned_and_receipted(plan, undisturbed):
    figures = Rehearsal(star(plan, links=((KINDS["fibre"], 1.0),))).run()
    assert figures["attempts"] == {"clean": plan.rounds}
    assert balanced(figures["samples"]) and figures["samples"]["elsewhere"] == 0
    assert figures["last_loss"] == pytest.approx(undisturbed["last_loss"], abs=0.3)


def test_without_the_coordinator_that_alone_averages_nobody_goes_on_by_itself(plan):
    rehearsal = Rehearsal(star(plan, rounds=99, longest_s=90.0))
    rehearsal.events.after(30.0, lambda: rehearsal.coordinator.kill())
    figures = rehearsal.run()
    assert not figures["reached"] and figures["attempts"]["clean"] > 2
    assert "alone" not in figures["attempts"]
    volunteers = {life.round for life in rehearsal.lives if life is not rehearsal.coordinator}
    assert len(volunteers) == 1 and figures["not_ended"] == []


def test_volunteers_go_back_with_a_coordinator_that_alone_has_the_state_to_give(plan):
    whole = star(plan, rounds=8, longest_s=300.0)
    timing = whole.recipe.round.model_copy(update={"checkpoint_every": 3})
    recipe = whole.recipe.model_copy(update={"round": timing})
    rehearsal = Rehearsal(replace(whole, recipe=recipe))
    lost_at = []

    def crash() -> None:
        if rehearsal.coordinator.round < 5:
            rehearsal.events.after(1.0, crash)
            return
        lost_at.append(rehearsal.coordinator.round)
        rehearsal.coordinator.kill()
        again = rehearsal._add(Role.COORDINATOR, KINDS["lan"])
        resume(again.learner, rehearsal._around.folder)
        lost_at.append(again.round)
        rehearsal.coordinator = again

    rehearsal.events.after(1.0, crash)
    figures = rehearsal.run()
    assert lost_at == [5, 3]
    assert figures["reached"] and figures["stuck"] == figures["not_ended"] == []


def test_a_round_ends_by_what_rounds_have_taken_when_most_peers_are_gone(plan):
    """The recipe would wait for 600 s; one peer of five needs 20 to fill the round."""
    timing = plan.recipe.round.model_copy(update={"deadline_s": 600.0})
    recipe = plan.recipe.model_copy(update={"round": timing})
    times: list[float] = []
    slow = replace(plan, recipe=recipe, rounds=7, samples_per_s=1.6)
    rehearsal = Rehearsal(slow, lambda attempt: times.append(attempt.at_s))

    def kill_most() -> None:
        for life in rehearsal.lives[2:]:
            life.kill()

    rehearsal.events.after(65.0, kill_most)
    figures = rehearsal.run()
    usual = times[2] - times[1]
    longest = max(b - a for a, b in pairwise(times))
    assert figures["reached"]
    assert usual < longest < 6 * usual + 30


def test_an_exchange_takes_what_the_slowest_link_needs():
    megabyte = 10**6
    two = exchange_s([Link(8, 8, 0)] * 2, [0.5, 0.5], megabyte)
    assert two == pytest.approx(1.0)  # half out and half back, at 1 MB/s
    sender = exchange_s([Link(8, 8, 0), Link(80, 80, 0)], [0.0, 1.0], megabyte)
    assert sender == pytest.approx(1.0)


def test_rounds_are_ended_by_the_target_and_not_by_the_deadline(plan, undisturbed):
    assert undisturbed["simulated_s"] < plan.rounds * (ROUND_S + plan.recipe.round.matchmaking_s)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "either a recipe file or --toy"),
        ("--toy --liars thief", "there is no liar 'thief'"),
        ("--toy --liars nan:9", "raise --peers"),
        ("--toy --liars nan:0.5", "0.5 is no whole number"),
        ("--toy --links carrier-pigeon", "choose from lan"),
        ("--toy --links 1/2", "UP/DOWN/MS"),
        ("--toy --liars clock=soon", "--liars 'clock=soon'"),
        ("--toy --liars clock=abc:1", "'abc' is no number; write KIND[:COUNT],… of"),
        ("--toy --liars flip:many", "'many' is no number; write KIND[:COUNT]"),
        ("--toy --links 1/fast/3", "'fast' is no number; write KIND[:SHARE],… of"),
        ("--toy --liars clock=nan", "nan is out of range"),
        ("--toy --churn -1", "--churn -1.0 makes no sense"),
        ("--toy --peers 0", "from 1 to 500"),
        ("no-such-recipe.json", "cannot be read"),
    ],
)
def test_words_that_make_no_sense_are_named(words, complaint, capsys):
    assert main(["simulate", *words.split()]) == 1
    assert complaint in capsys.readouterr().err


def test_a_recipe_needs_its_files_and_no_other_ones(plan, tmp_path, capsys):
    recipe = tmp_path / "recipe.json"
    recipe.write_text(plan.recipe.model_dump_json())
    assert main(["simulate", str(recipe)]) == 1
    assert "tokenizer.json of the recipe is not in" in capsys.readouterr().err
    (tmp_path / "tokenizer.json").write_text("{}")
    assert main(["simulate", str(recipe)]) == 1
    assert "is not the recipe's tokenizer.json: its SHA-256" in capsys.readouterr().err
    files = plan.files.tokenizer.parent
    words = ["simulate", str(recipe), "--files", str(files), "--peers", "3", "--rounds", "1"]
    assert main([*words, "--liars", "clock=0.5"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["reached"]
    recipe.write_text('{"format": 1}')
    assert main(["simulate", str(recipe)]) == 1
    assert "is not a recipe: collaboration" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(catalogue.plugins("strategies")))
def test_every_strategy_learns_in_a_rehearsal_with_people_who_come_and_go(name, plan):
    choice, options = Choice(name=name), plan.recipe.optimizer
    if catalogue.create("strategies", choice).optimizer == "sgd":
        options = options.model_copy(update={"learning_rate": 0.3})
    recipe = plan.recipe.model_copy(update={"strategy": choice, "optimizer": options})
    figures = Rehearsal(replace(plan, recipe=recipe, leaves_per_minute=1.0)).run()
    assert figures["reached"] and figures["stuck"] == figures["not_ended"] == []
    assert figures["last_loss"] < figures["first_loss"] - 0.3
    assert balanced(figures["samples"])


@pytest.mark.parametrize("name", ["loop", "timing", "ending", "catchup", "coordinator", "tally"])
def test_the_round_loop_tells_the_time_by_the_swarms_clock_alone(name):
    """Else a rehearsal would wait for real seconds, and no simulated one would pass."""
    assert "import time" not in (ROOT / "trainer" / "engine" / f"{name}.py").read_text()
