"""Peers and a coordinator as real processes: they train together, and outlive each other."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.swarm.replay import deviation
from tests.swarm.swarm import Member, Swarm, history_of, refusals_of
from tests.waiting import wait_for
from trainer.wire import Wish

pytestmark = pytest.mark.swarm


def test_three_unequal_peers_learn_what_one_process_learns_from_their_samples(swarm: Swarm):
    exactly = swarm.recipe.round.model_copy(update={"codec": "fp32", "target_samples": 400})
    swarm.recipe = swarm.recipe.model_copy(update={"round": exactly})
    coordinator = swarm.open()
    slower_by_s = {"a": 0.0, "b": 0.02, "c": 0.1}
    peers = [swarm.add(name, lies={"slow": seconds}) for name, seconds in slower_by_s.items()]
    wait_for("full rounds", lambda: sum(r["members"] == 3 for r in coordinator.rounds()) >= 6)

    trees = [process for member in swarm.members.values() for process in member.tree()]
    for peer in peers:
        assert peer.stop() == "stopped"
    assert coordinator.stop() == "stopped"
    _, alive = psutil.wait_procs(trees, timeout=60)
    assert alive == []
    assert "Traceback" not in "".join(member.log() for member in swarm.members.values())

    by_round = history_of(coordinator, *peers)
    first, last = min(by_round), max(by_round)
    assert {verdict["outcome"] for verdict in by_round.values()} == {"clean"}
    assert by_round[last]["loss"] < 0.85 * by_round[first]["loss"]
    for number in range(first, last):
        credited = [r for p in peers for r in p.said("receipt") if r["round"] == number]
        for figure in ("samples", "tokens"):
            assert sum(r[figure] for r in credited if r["accepted"]) == by_round[number][figure]

    assert coordinator.said("checkpoint")
    measured = {one["round"] for one in coordinator.said("held_out")}
    assert measured and measured <= set(by_round)  # the site has a record to put them into
    rounds, apart = deviation(swarm, peers, coordinator)
    assert rounds > 5
    assert apart < 1e-5


def test_a_round_outlives_a_peer_killed_in_its_middle(swarm: Swarm):
    coordinator = swarm.open()
    a, b, victim = (swarm.add(name) for name in "abc")
    wait_for("round of three", lambda: any(r["members"] == 3 for r in coordinator.rounds()))
    wait_for("victim at work", lambda: victim.activity() == "training")
    tree = victim.tree()
    assert len(tree) >= 4  # itself, the DHT, p2pd and the averager
    sockets = sockets_of(tree)

    victim.kill()
    reached = coordinator.round
    wait_for("next round", lambda: min(a.round, b.round) > reached + 1)
    _, alive = psutil.wait_procs(tree, timeout=60)
    assert alive == []
    later = [r for peer in (a, b) for r in peer.said("receipt") if r["round"] >= reached]
    assert later and all(r["accepted"] for r in later)

    assert sockets
    for path in sockets:
        with suppress(FileNotFoundError):  # another swarm on this machine may have swept it
            os.utime(path, (0, 0))  # as if it had lived for long: a younger one may be a start's
    victim.start()
    wait_for("its return", lambda: any(r["members"] == 3 for r in coordinator.rounds()[-2:]))
    assert not any(path.exists() for path in sockets)
    dead = {f"torch_{process.pid}_" for process in tree}
    shared = [path.name for path in Path("/dev/shm").glob("torch_*")]
    assert not [name for name in shared if name.startswith(tuple(dead))]


def sockets_of(tree: list[psutil.Process]) -> list[Path]:
    """The control sockets of a peer's p2pd, from its command line."""
    words = [word for process in tree for word in process.cmdline()]
    found = [re.search(r"/unix(/.+hivemind-p2p.+\.sock)", word) for word in words]
    return [path for match in found if match and (path := Path(match[1])).exists()]


def test_a_peer_killed_while_averaging_makes_the_round_start_again(tmp_path):
    """A large model on a small part of the machine averages long enough to be caught at it."""
    swarm = Swarm(tmp_path, target_samples=256, big=True)
    try:
        coordinator = swarm.open()
        a, victim = (swarm.add(name) for name in "ab")
        wait_for("round of two", lambda: any(r["members"] == 2 for r in coordinator.rounds()))
        wait_for("average", lambda: victim.activity() == "averaging")
        victim.kill()
        reached = coordinator.round
        wait_for("next rounds", lambda: min(a.round, coordinator.round) > reached + 1)
        final = {}
        for verdict in a.rounds() + coordinator.rounds():
            assert verdict["outcome"] != "partial"
            final.setdefault(verdict["round"], set()).add(verdict["loss"])
        assert all(len(losses) == 1 for number, losses in final.items() if number > reached)
    finally:
        swarm.close()


def test_a_late_peer_takes_the_state_from_the_others(swarm: Swarm):
    coordinator = swarm.open()
    first = swarm.add("first")
    wait_for("some rounds", lambda: first.round >= 3)
    late = swarm.add("late")
    shared = wait_for("shared round", lambda: [r for r in coordinator.rounds() if r["members"] > 1])
    accepted = wait_for("credit", lambda: [r for r in late.said("receipt") if r["accepted"]])
    assert accepted[0]["round"] > 3  # and its parameters were the others', or it had been refused
    assert shared[0]["loss"] < coordinator.rounds()[0]["loss"]


def test_a_paused_peer_waits_with_the_sites_reason_and_goes_on(swarm: Swarm):
    coordinator = swarm.open()
    peer = swarm.add("a")
    wait_for("a round", lambda: peer.round >= 0)
    for member in (peer, coordinator):
        member.wish(Wish.PAUSE, "the organiser has a look at it")
    wait_for("pause", lambda: peer.activity() == "paused")
    assert peer.said("progress")[-1]["reason"] == "the organiser has a look at it"
    assert_hardly_works(peer)
    reached = peer.round
    for member in (peer, coordinator):
        member.wish(Wish.RUN)
    wait_for("more rounds", lambda: peer.round > reached)


def assert_hardly_works(peer: Member) -> None:
    """While it says the same thing twice, which takes it ten seconds, it uses hardly any core."""

    def cpu_s() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in peer.tree())

    said, began, before = len(peer.said("progress")), time.monotonic(), cpu_s()
    wait_for("two more words", lambda: len(peer.said("progress")) >= said + 2)
    assert cpu_s() - before < 0.2 * (time.monotonic() - began)


def test_a_finished_peer_hands_in_its_last_round(swarm: Swarm):
    coordinator = swarm.open()
    peer = swarm.add("a")
    wait_for("a round", lambda: peer.round >= 0)
    for member in (peer, coordinator):
        member.wish(Wish.FINISH, "the target was reached")
    for member in (peer, coordinator):
        assert member.process is not None
        member.process.wait(timeout=40)
        assert member.said("left")[-1]["cause"] == "finished"
    assert all(receipt["accepted"] for receipt in peer.said("receipt"))
    assert coordinator.said("checkpoint")[-1]["round"] == peer.round + 1
    assert coordinator.said("held_out")[-1]["round"] == peer.round


def test_a_peer_of_two_processes_is_a_peer_like_any_other(swarm: Swarm):
    coordinator = swarm.open()
    first = swarm.add("first")
    wait_for("a round", lambda: first.round >= 1)
    pair = swarm.add("pair", num_processes=2, split="parameters")  # enters a later round
    wait_for("rounds of two", lambda: sum(v["members"] == 2 for v in coordinator.rounds()) >= 3)
    assert refusals_of(first, pair) == []
    tree = pair.tree()
    assert pair.stop() == "stopped"
    assert "Traceback" not in pair.log()
    _, alive = psutil.wait_procs(tree, timeout=60)
    assert alive == []


@pytest.mark.soak
def test_peers_that_nobody_can_dial_train_through_the_coordinator(swarm: Swarm):
    coordinator = swarm.open()
    senders = [swarm.add(name, role="sender") for name in "ab"]
    wait_for("rounds of two", lambda: sum(v["members"] == 2 for v in coordinator.rounds()) >= 3)
    for sender in senders:
        assert any(receipt["accepted"] for receipt in sender.said("receipt"))
        assert sender.stop() == "stopped"
