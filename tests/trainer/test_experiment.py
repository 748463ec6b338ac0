"""Experiments: equal by seed, with baselines, and a sentence that claims no more than it may."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from trainer import catalogue
from trainer.commands import main
from trainer.experiment import Experiment
from trainer.recipe import Choice
from trainer.simulator.findings import Run, conclusion, summary
from trainer.simulator.lab import names_of

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "strategies": [{"name": "fedavg"}, {"name": "dedloc"}],
    "split": "label",
    "volunteers": 3,
    "rounds": 5,
    "seeds": 1,
}


def made(*names: str, **more: Any) -> Experiment:
    return Experiment(strategies=tuple(Choice(name=name) for name in names), **more)


def runs(**losses: list[float | None]) -> list[Run]:
    """One of each seed, 0 first."""
    return [
        Run(name, seed, [], loss, loss, 0.1, reached=loss is not None)
        for name, own in losses.items()
        for seed, loss in enumerate(own)
    ]


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> dict[str, Any]:
    """Of the command, in a process of its own."""
    file = tmp_path_factory.mktemp("lab") / "small.json"
    file.write_text(json.dumps(SMALL))
    subprocess.run(
        [sys.executable, "-m", "trainer", "simulate", str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(file.with_suffix(".result.json").read_text())
    return found


def test_the_same_experiment_has_the_same_result_to_the_last_digit(result, tmp_path, capsys):
    file = tmp_path / "small.json"
    file.write_text(json.dumps(SMALL))
    assert main(["simulate", str(file)]) == 0
    assert json.loads(file.with_suffix(".result.json").read_text()) == result
    said = capsys.readouterr().out
    assert "FedAvg, seed 0: held-out loss" in said and result["conclusion"] in said


def test_who_learns_alone_fits_its_own_topic_and_no_other(result):
    runs = {run["name"]: run for run in result["runs"]}
    assert runs["local-only"]["own"] < runs["local-only"]["loss"] - 0.1
    assert runs["FedAvg"]["own"] == pytest.approx(runs["FedAvg"]["loss"])


def test_a_result_holds_all_curves_and_says_how_the_texts_were_split(result):
    assert result["complete"] and result["rounds_done"] == result["num_rounds"] == 20
    names = [run["name"] for run in result["runs"]]
    assert names == ["FedAvg", "DeDLOC", "local-only", "centralised"]
    for run in result["runs"]:
        assert run["reached"] and run["loss"] > 0 and run["worst"] > 0
        assert run["curve"][-1][0] == 4 and len(run["curve"]) == 5
        assert run["curve"][-1][1] < run["curve"][0][1]
    assert [sum(count > 0 for count in own) for own in result["topics_of_each"]] == [1, 1, 1]
    assert result["experiment"] == Experiment(**SMALL).model_dump(mode="json")


def test_who_has_one_topic_only_learns_less_alone_than_all_do_together(result):
    losses = {run["name"]: run["loss"] for run in result["runs"]}
    assert losses["centralised"] < losses["FedAvg"] < losses["local-only"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({**SMALL, "volunteers": 1}, "volunteers: Input should be greater than or equal to 2"),
        ({**SMALL, "strategies": [{"name": "nothing"}]}, "'nothing' is not in strategies"),
        ({**SMALL, "strategies": [{"name": "fedavg"}] * 2}, "two of them are the same"),
        ({**SMALL, "colour": "red"}, "colour: Extra inputs are not permitted"),
    ],
)
def test_an_experiment_that_makes_no_sense_is_refused_in_words(tmp_path, capsys, content, words):
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(content))
    assert main(["simulate", str(file)]) == 1
    assert words in capsys.readouterr().err and not file.with_suffix(".result.json").exists()


def test_options_beside_an_experiment_are_refused(tmp_path, capsys):
    file = tmp_path / "small.json"
    file.write_text(json.dumps(SMALL))
    assert main(["simulate", str(file), "--peers", "5"]) == 1
    assert "leave out --peers" in capsys.readouterr().err


def test_more_runs_than_a_machine_should_do_are_refused():
    with pytest.raises(ValidationError, match="65 runs, and 60 are the most"):
        Experiment(
            strategies=tuple(
                Choice(name="fedprox", params={"mu": number / 10}) for number in range(11)
            ),
            seeds=5,
        )


def test_one_strategy_with_several_parameters_has_a_name_for_each():
    choices = (Choice(name="fedprox", params={"mu": 1.0}), Choice(name="fedprox"))
    experiment = Experiment(strategies=(*choices, Choice(name="fedavg")))
    assert names_of(experiment) == ["FedProx mu=1.0", "FedProx by default", "FedAvg"]


def test_the_sentence_names_a_winner_only_if_it_is_lower_with_every_seed():
    experiment = made("fedavg", "scaffold", seeds=3)
    names = ["fedavg", "scaffold"]
    clear = conclusion(experiment, runs(fedavg=[3, 4, 5], scaffold=[2, 3, 4]), names)
    assert "scaffold held up best, with each of 3 seeds: held-out loss 3.000 ± 0.816" in clear
    assert "then fedavg with 4.000" in clear and "topics split by Dirichlet(0.3)" in clear
    beside = runs(**{"local-only": [5, 5, 5], "centralised": [1, 1, 1]})
    with_baselines = conclusion(
        experiment, [*runs(fedavg=[3] * 3, scaffold=[2] * 3), *beside], names
    )
    assert "alone end at 5.000 ± 0.000, all texts on one machine at 1.000" in with_baselines
    mixed = conclusion(experiment, runs(fedavg=[3, 4, 5], scaffold=[2, 3, 6]), names)
    assert "cannot be told apart from fedavg" in mixed


def test_the_sentence_trusts_no_single_seed_and_names_who_failed():
    one = conclusion(
        made("fedavg", "scaffold", seeds=1), runs(fedavg=[3], scaffold=[2]), ["fedavg", "scaffold"]
    )
    assert "in the one seed tried" in one and "luck" in one
    names = ["fedavg", "scaffold"]
    some = conclusion(made(*names, seeds=2), runs(fedavg=[3, 3], scaffold=[2, None]), names)
    assert (
        "nothing to compare it with" in some and "Not with every seed got through: scaffold" in some
    )
    none = conclusion(made(*names, seeds=1), runs(fedavg=[None], scaffold=[None]), names)
    assert none == "No strategy got through with every seed, so nothing can be said."


def test_a_row_of_the_table_is_the_mean_over_its_seeds():
    (row,) = summary(runs(fedavg=[2.0, 4.0]), ["fedavg", "scaffold"])
    assert (row["loss"], row["loss_spread"], row["seeds"], row["done"]) == (3.0, 1.0, 2, 2)
    (row,) = summary(runs(fedavg=[2.0, None]), ["fedavg"])
    assert (row["loss"], row["done"], row["worst"]) == (2.0, 1, 2.0)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(catalogue.plugins("strategies")))
def test_every_strategy_gets_through_with_slow_volunteers_and_one_topic_each(tmp_path, name):
    file = tmp_path / "each.json"
    experiment = made(name, split="label", volunteers=6, slow_percent=50, rounds=15, seeds=1)
    file.write_text(experiment.model_dump_json())
    assert main(["simulate", str(file)]) == 0
    found = json.loads(file.with_suffix(".result.json").read_text())
    together, alone, _ = found["runs"]
    assert together["loss"] < alone["loss"]
