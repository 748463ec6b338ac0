"""Members that lie, a bad step that slipped through, and wrong clocks, among real peers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.swarm.swarm import Member, Swarm, refusals_of
from tests.waiting import wait_for

pytestmark = pytest.mark.swarm


def refusals(member: Member) -> str:
    """Why its offers were not counted, in the words of its receipts."""
    return " ".join(r["reason"] for r in member.said("receipt") if not r["accepted"])


def test_liars_are_named_and_the_honest_go_on(swarm: Swarm):
    coordinator = swarm.open()
    honest = [swarm.add(name) for name in "ab"]
    wait_for("honest rounds", lambda: min(peer.round for peer in honest) >= 1)
    heavy = swarm.add("heavy", lies={"note": {"weight": 1e6}})
    broken = swarm.add("broken", lies={"nan": True})
    far = swarm.add("far", lies={"record": {"round": 10**6, "samples": 10**6}})
    wait_for("refusal of the weight", lambda: "claimed a weight of 1,000,000" in refusals(heavy))
    wait_for("refusal of the NaN", lambda: "was not finite" in refusals(broken))
    reached = coordinator.round
    wait_for("more rounds", lambda: min(peer.round for peer in honest) > reached + 2)

    verdicts = {v["round"]: v for v in coordinator.rounds() if v["outcome"] == "clean"}
    assert max(verdicts) < 1000  # the record of round 10^6 pulled nobody forward
    for peer in honest:
        for verdict in peer.rounds():
            if verdict["round"] in verdicts:
                for figure in ("members", "samples", "tokens", "loss", "refused"):
                    assert verdict[figure] == verdicts[verdict["round"]][figure]
    named = {
        (one["peer"], one["reason"])
        for v in coordinator.said("round")
        for one in v["verdict"]["refused"]
    }
    assert any(p == heavy.peer_id and "claimed a weight of 1,000,000" in why for p, why in named)
    assert any(p == broken.peer_id and "not finite" in why for p, why in named)
    innocent = {member.peer_id for member in (*honest, coordinator)}
    assert not innocent & {peer for peer, _ in named}
    newest = verdicts[max(verdicts)]
    assert newest["loss"] < 0.9 * verdicts[min(verdicts)]["loss"]
    for liar in (heavy, broken):
        assert not any(r["accepted"] for r in liar.said("receipt"))
    assert far.round < 1000


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Swarm]:
    """Rounds end by their samples, not by their deadline, however busy the machine is."""
    made = Swarm(tmp_path, deadline_s=90)
    yield made
    made.close()


@pytest.mark.soak
def test_m6_a_peer_that_over_reports_its_samples_does_not_end_the_others_round(patient: Swarm):
    """It claims 10^6 from the first moment; rounds stay as full as they were without it."""
    swarm, coordinator = patient, patient.open()
    honest = [swarm.add(name) for name in "ab"]
    wait_for("honest rounds", lambda: sum(v["members"] == 2 for v in coordinator.rounds()) >= 2)
    before = coordinator.round
    lie = {"samples": 10**6, "samples_per_s": 1e6, "stage": "ready"}
    swarm.add("boaster", lies={"record": lie, "note": {"samples": 10**6, "tokens": 10**6}})
    wait_for("more rounds", lambda: coordinator.round > before + 4)
    later = [v for v in coordinator.rounds() if v["round"] > before]
    target = swarm.recipe.round.target_samples
    assert all(0.5 * target <= v["samples"] < 10 * target for v in later if v["outcome"] == "clean")
    for peer in honest:
        assert all(r["accepted"] for r in peer.said("receipt") if r["round"] > before)


def test_a_bad_step_that_slipped_through_is_undone_by_all_alike(swarm: Swarm):
    bad = {"poison": 7}
    coordinator = swarm.add("coordinator", role="coordinator", lies=bad)
    wait_for("open swarm", lambda: coordinator.said("swarm_opened"))
    peers = [swarm.add(name, lies=bad) for name in "ab"]
    wait_for("rounds after it", lambda: min(peer.round for peer in peers) >= 11)

    verdicts = {v["round"]: v for v in coordinator.rounds()}
    undone = [v for v in coordinator.rounds() if v["outcome"] == "undone"]
    assert [v["round"] for v in undone] == [8]
    assert "back to the parameters of round 7" in undone[0]["reason"]
    assert undone[0]["loss"] > 2 * verdicts[7]["loss"]
    assert verdicts[9]["loss"] < 1.2 * verdicts[7]["loss"]
    for peer in peers:
        receipts = {r["round"]: r for r in peer.said("receipt")}
        if 8 in receipts:
            assert not receipts[8]["accepted"]
            assert receipts[8]["reason"] == undone[0]["reason"]
        assert all(r["accepted"] for n, r in receipts.items() if n > 8)


@pytest.mark.soak
def test_a16_wrong_clocks_that_are_known_and_a_clock_that_jumps_cost_nothing(swarm: Swarm):
    coordinator = swarm.open()
    peers = [
        swarm.add(f"by-{wrong_s:.0f}", lies={"clock": [[0, wrong_s]]}, clock_offset_s=-wrong_s)
        for wrong_s in (1.0, 5.0, 600.0)
    ]
    peers.append(swarm.add("jumps", lies={"clock": [[0, 0.0], [25, 3600.0]]}))

    def of_four(after: int = -1) -> int:
        return sum(v["members"] == 4 and v["round"] > after for v in coordinator.rounds())

    wait_for("rounds of four", lambda: of_four() >= 3)
    late = [one["at"] for one in peers[-1].said_at("progress")]
    wait_for("jump", lambda: peers[-1].said_at("progress")[-1]["at"] > late[0] + 3000)
    reached = coordinator.round
    wait_for("more rounds of four", lambda: of_four(after=reached) >= 3)
    assert refusals_of(*peers) == []
