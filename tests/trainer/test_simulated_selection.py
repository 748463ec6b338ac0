"""Rounds in which some devices train: the real loop of many peers, in simulated time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trainer.rehearsals import make_plan
from tests.trainer.test_simulator import balanced
from trainer.recipe import Choice, Participation
from trainer.simulator.links import KINDS
from trainer.simulator.plan import Plan
from trainer.simulator.run import Rehearsal
from trainer.wire import Role

NOT_CHOSEN = "other devices were chosen"
STOPPED = "this device stopped before the round ended"  # at the rehearsal's end


def plan(folder: Path, strategy: str = "dedloc", limits: dict | None = None, **more) -> Plan:
    """`limits` are fields of its participation, `more` of the plan."""
    made = make_plan(folder, **{"peers": 9, "rounds": 10, **more})
    changes = {"participation": Participation(**(limits or {"chosen_by": "lot", "share": 1 / 3}))}
    timing = made.recipe.round.model_copy(update={"target_samples": 40})
    changes |= {"round": timing, "strategy": Choice(name=strategy)}
    return replace(made, recipe=made.recipe.model_copy(update=changes))


def limited(plan: Plan, steps: int, deadline_s: float = 600.0) -> Plan:
    """A round ends when its devices have taken so many local steps, or at the deadline."""
    timing = plan.recipe.round.model_copy(
        update={"target_samples": 10**6, "deadline_s": deadline_s}
    )
    choice = Choice(name="fedavg", params={"most_local_steps": steps})
    recipe = plan.recipe.model_copy(update={"round": timing, "strategy": choice})
    return replace(plan, recipe=recipe)


def trained(rehearsal: Rehearsal) -> dict[int, set[str]]:
    """Who has an accepted receipt of each round."""
    found: dict[int, set[str]] = defaultdict(set)
    for name, receipt in rehearsal.ledger._receipts:
        if receipt.accepted:
            found[receipt.round].add(name)
    return found


@pytest.mark.parametrize("chosen_by", ["lot", "speed"])
def test_a_third_of_the_devices_train_in_each_round_in_turn_and_no_work_is_wasted(
    tmp_path: Path, chosen_by: str
):
    rehearsal = Rehearsal(plan(tmp_path, limits={"chosen_by": chosen_by, "share": 1 / 3}))
    figures = rehearsal.run()
    assert figures["reached"] and figures["attempts"] == {"clean": 10}
    found = trained(rehearsal)
    assert all(len(found[number]) == 3 for number in range(1, 10))  # all train in the first
    assert len(set.union(*(found[number] for number in range(1, 10)))) >= 7
    assert not any(NOT_CHOSEN in reason for reason in figures["refused"])
    assert balanced(figures["samples"]) and figures["stuck"] == []
    asked = {r.round: r.verdict.asked for _, r in rehearsal.ledger._receipts if r.accepted}
    assert asked[0] is None and {asked[number] for number in range(1, 10)} == {3}
    assert figures["last_loss"] < figures["first_loss"]


def test_one_that_offers_uninvited_is_refused_and_the_others_go_on(tmp_path: Path):
    rehearsal = Rehearsal(plan(tmp_path, liars=("uninvited",)))
    figures = rehearsal.run()
    assert figures["reached"] and figures["attempts"] == {"clean": 10}
    refused = {reason for reason in figures["refused"] if NOT_CHOSEN in reason}
    (liar,) = (life.name for life in rehearsal.lives if life.liar)
    assert refused == {f"{liar}: came in a round for which other devices were chosen"}
    assert balanced(figures["samples"])


def test_the_choice_goes_on_while_the_coordinator_is_dead_and_when_it_is_back(tmp_path: Path):
    rehearsal = Rehearsal(plan(tmp_path, peers=6, rounds=99, longest_s=140.0))
    died_at: list[int] = []

    def die() -> None:
        died_at.append(rehearsal.coordinator.round)
        rehearsal.coordinator.kill()

    def come_back() -> None:
        rehearsal.coordinator = rehearsal._add(Role.COORDINATOR, KINDS["lan"])

    rehearsal.events.after(25.0, die)
    rehearsal.events.after(80.0, come_back)
    figures = rehearsal.run()
    found = trained(rehearsal)
    last = rehearsal.coordinator.round
    assert last > died_at[0] + 6 and figures["stuck"] == figures["not_ended"] == []
    sizes = [len(found[number]) for number in range(1, last)]
    assert sum(size == 2 for size in sizes) >= 0.8 * len(sizes)
    assert not any(NOT_CHOSEN in reason for reason in figures["refused"])


def test_where_people_come_and_go_each_round_still_has_its_devices(tmp_path: Path):
    """Those chosen may be dead: then it is everybody's turn."""
    figures = Rehearsal(plan(tmp_path, rounds=16, leaves_per_minute=0.5, seed=3)).run()
    assert figures["reached"] and figures["killed"] + figures["left"] >= 5
    assert figures["stuck"] == figures["not_ended"] == []
    assert balanced(figures["samples"])
    assert not any(NOT_CHOSEN in reason for reason in figures["refused"])


def test_when_all_of_those_chosen_die_the_others_take_the_round_over(tmp_path: Path):
    rehearsal = Rehearsal(plan(tmp_path, rounds=6, longest_s=600.0))

    def kill_the_chosen() -> None:
        loops = [life for life in rehearsal._present() if life.round == 2]
        if not loops:
            rehearsal.events.after(0.5, kill_the_chosen)
            return
        board = rehearsal._net.board.read("", lambda name: rehearsal.events.now)
        chosen = board["coordinator"].chosen
        if board["coordinator"].round != 2 or not chosen:
            rehearsal.events.after(0.5, kill_the_chosen)
            return
        for life in loops:
            if life.name in chosen:
                life.kill()

    rehearsal.events.after(1.0, kill_the_chosen)
    figures = rehearsal.run()
    assert figures["reached"] and figures["stuck"] == []
    assert balanced(figures["samples"])


def test_by_speed_fast_devices_train_more_often_and_slow_ones_now_and_then(tmp_path: Path):
    rules = {"chosen_by": "speed", "share": 0.34}
    rehearsal = Rehearsal(limited(plan(tmp_path, limits=rules, rounds=25), 8, deadline_s=6.0))
    figures = rehearsal.run()
    assert figures["reached"] and figures["stuck"] == []
    turns: dict[str, int] = defaultdict(int)
    for names in trained(rehearsal).values():
        for name in names:
            turns[name] += 1
    lives = [life for life in rehearsal.lives if life is not rehearsal.coordinator]
    lives.sort(key=lambda life: life._samples_per_s)
    slow, fast = (sum(turns[life.name] for life in part) for part in (lives[:3], lives[-3:]))
    assert fast > 1.2 * slow > 0


def test_d05_a_round_with_fewer_devices_than_it_needs_waits_and_keeps_what_they_have(
    tmp_path: Path,
):
    rehearsal = Rehearsal(plan(tmp_path, peers=2, limits={"least_members": 3}, rounds=3))
    before: list[object] = []

    def somebody_comes() -> None:
        states = [life.learner.state() for life in rehearsal.lives]
        before.extend([state[0]["round"] for state in states])
        rehearsal._come()

    rehearsal.events.after(60.0, somebody_comes)
    figures = rehearsal.run()
    assert before == [0, 0, 0]  # the coordinator's and both devices' models are as they were
    assert figures["reached"] and figures["attempts"] == {"clean": 3}
    first = rehearsal.ledger.witnessed[0]
    assert first.members == 3 and first.samples > 40
    assert set(figures["refused"]) <= {STOPPED} and balanced(figures["samples"])


def test_a_round_ends_with_the_first_of_those_chosen_and_takes_what_the_slow_one_has(
    tmp_path: Path,
):
    def made(done_share: float) -> Rehearsal:
        limits = {"chosen_by": "lot", "share": 1.0, "done_share": done_share}
        return Rehearsal(limited(plan(tmp_path, peers=4, limits=limits), 8))

    several = {done_share: made(done_share) for done_share in (0.75, 1.0)}
    times = {done_share: one.run() for done_share, one in several.items()}
    assert all(figures["reached"] for figures in times.values())
    assert times[0.75]["simulated_s"] < 0.8 * times[1.0]["simulated_s"]
    counts = [r.samples for _, r in several[0.75].ledger._receipts if r.accepted]
    most = 8 * several[0.75].plan.recipe.micro_batch
    assert max(counts) == most and 0 < min(counts) < most
    assert set(times[0.75]["refused"]) <= {STOPPED}
