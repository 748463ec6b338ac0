"""A swarm without its coordinator, with a new life of it, and with people who may not take part."""

from __future__ import annotations

import time

import pytest
from safetensors import safe_open

from tests.swarm.swarm import Member, Swarm
from tests.waiting import wait_for
from trainer.passport import Claims, make_authority, sign
from trainer.swarm.identity import FILENAME, load_or_make
from trainer.wire import Wish

pytestmark = pytest.mark.swarm


def test_a07_a_peer_whose_coordinator_is_gone_trains_alone_and_says_so(swarm: Swarm):
    coordinator = swarm.open()
    peer = swarm.add("a")
    wait_for("a round", lambda: peer.round >= 1)
    coordinator.kill()
    wait_for(
        "rounds alone",
        lambda: sum(v["outcome"] == "alone" for v in peer.rounds()) >= 4,
    )
    alone = [v for v in peer.rounds() if v["outcome"] == "alone"]
    assert {v["reason"] for v in alone} == {"training alone"}
    assert alone[-1]["loss"] < peer.rounds()[0]["loss"]
    assert peer.said("progress")[-1]["reason"] == "nobody else is here"
    assert peer.stop() == "stopped"


@pytest.mark.soak
def test_a11_a_coordinator_in_its_second_life_goes_on_where_the_swarm_is(swarm: Swarm):
    coordinator = swarm.open()
    peer = swarm.add("a")
    wait_for("a checkpoint", lambda: coordinator.said("checkpoint"))
    coordinator.kill()
    killed_at = coordinator.round
    wait_for("rounds alone", lambda: peer.round > killed_at + 2)
    coordinator.start()
    wait_for("its rounds again", lambda: coordinator.round > killed_at + 3)
    verdicts = {v["round"]: v["loss"] for v in peer.rounds()}
    rejoined = [v for v in coordinator.rounds() if v["round"] > killed_at + 3]
    assert all(v["loss"] == verdicts.get(v["round"], v["loss"]) for v in rejoined)
    reached = coordinator.round
    assert reached > killed_at
    wait_for("the same of the other", lambda: peer.round >= reached)


def test_a11_after_everything_stopped_the_swarm_goes_on_from_the_checkpoint(swarm: Swarm):
    coordinator = swarm.open()
    peer = swarm.add("a")
    wait_for("rounds", lambda: coordinator.round >= 3)
    peer.stop()
    coordinator.stop()
    written = coordinator.said("checkpoint")[-1]
    path = coordinator.folder / "checkpoints" / written["filename"]
    with safe_open(path, framework="pt") as file:
        assert file.metadata()["round"] == str(written["round"]) == str(coordinator.round + 1)
        moments = [n for n in file.keys() if n.startswith("exp_avg_sq.")]  # noqa: SIM118
        assert any(bool(file.get_tensor(name).any()) for name in moments)
    last_loss = coordinator.rounds()[-1]["loss"]

    early = swarm.add("early")  # a volunteer is there before the organiser, with a fresh model
    wait_for("wait", lambda: early.activity() == "waiting")
    coordinator.start()
    wait_for("next round", lambda: coordinator.round >= written["round"])
    following = next(v for v in coordinator.rounds() if v["round"] == written["round"])
    assert following["loss"] < last_loss * 1.05
    wait_for("the same of the other", early.rounds)
    assert min(v["round"] for v in early.rounds()) >= written["round"]


@pytest.mark.parametrize("deaths", [2, pytest.param(10, marks=pytest.mark.soak)])
def test_a09_donors_that_die_one_after_the_other_cost_the_coordinator_nothing(swarm, deaths):
    coordinator = swarm.open()
    donor = swarm.prepare("donor")
    donor.program = "tests.swarm.donor"
    for _ in range(deaths):
        donor.start("50", "dies")
        donor.process.wait(timeout=60)
        assert coordinator.process.poll() is None
        assert list((coordinator.folder / "checkpoints").iterdir()) == []
    donor.start("50")
    wait_for("the state", lambda: coordinator.said("progress")[-1]["round"] == 50)
    assert coordinator.stop() == "stopped"
    assert [one["round"] for one in coordinator.said("checkpoint")] == [50]
    kept = [path.name for path in (coordinator.folder / "checkpoints").iterdir()]
    assert kept == [coordinator.said("checkpoint")[0]["filename"]]
    assert "Traceback" not in coordinator.log()


def refused(swarm: Swarm, name: str, **claims) -> Member:
    """Starts a peer whose passport has these changes; it keeps trying, and never gets in."""
    folder = swarm.folder / name
    folder.mkdir()
    authority = claims.pop("authority", swarm.authority)
    good = {
        "user": name,
        "device": name,
        "peer_key": load_or_make(folder / FILENAME).public_text,
        "collaboration": swarm.recipe.collaboration,
        "expires_at": time.time() + 3600,
    }
    passport = sign(Claims(**{**good, **claims}), authority)
    return swarm.add(name, passport=passport.model_dump())


def says_that_nobody_answers(stranger: Member) -> bool:
    """At some time: in between it tries again."""
    said = stranger.said("progress")
    return any(one["activity"] == "waiting" and "does not answer" in one["reason"] for one in said)


def test_a_peer_without_a_valid_passport_is_refused_by_the_dht(swarm: Swarm, tmp_path):
    coordinator = swarm.open()
    other_key = load_or_make(tmp_path / "other.key").public_text
    strangers = [
        refused(swarm, "forged", authority=make_authority(tmp_path / "forger.pem")),
        refused(swarm, "expired", expires_at=time.time() - 10),
        refused(swarm, "borrowed", peer_key=other_key),
        refused(swarm, "elsewhere", collaboration="another"),
    ]
    for stranger in strangers:
        wait_for(f"refusal of {stranger.name}", lambda s=stranger: says_that_nobody_answers(s))
    assert coordinator.said("progress")[-1]["reason"] == "no peer is training yet"
    for stranger in strangers:
        assert stranger.stop() == "stopped"
        assert stranger.said("receipt") == []


def test_a_peer_leaves_cleanly_whatever_it_does(swarm: Swarm):
    swarm.open()
    swarm.add("b", lies={"slow": 1.5})  # for which others wait, so that it is seen that they do
    peer = swarm.add("a")
    for moment in ("starting", "training", "matchmaking", "paused"):
        if moment == "paused":
            peer.wish(Wish.PAUSE)
        wait_for(moment, lambda wanted=moment: peer.activity() == wanted)
        assert peer.stop() == "stopped"
        assert "Traceback" not in peer.log()
        (peer.folder / "said.jsonl").unlink()
        peer.start()


@pytest.mark.soak
def test_a_peer_whose_passport_runs_out_waits_instead_of_training_alone(swarm: Swarm):
    swarm.open()
    peer = refused(swarm, "a", expires_at=time.time() + 30)
    wait_for("training", lambda: peer.activity() == "training")
    wait_for("wait", lambda: peer.activity() == "waiting")
    assert "this passport expired" in peer.said("progress")[-1]["reason"]


@pytest.mark.soak
def test_where_the_coordinator_alone_averages_volunteers_wait_for_its_second_life(tmp_path):
    swarm = Swarm(tmp_path, averaged_by="coordinator", checkpoint_every=2)
    try:
        coordinator = swarm.open()
        peers = [swarm.add(name, role="sender") for name in "ab"]
        wait_for("a checkpoint", lambda: coordinator.said("checkpoint"))
        coordinator.kill()
        wait_for(
            "a reason",
            lambda: all("alone averages" in p.said("progress")[-1]["reason"] for p in peers),
        )
        left_at = max(peer.round for peer in peers)
        coordinator.start()
        wait_for("its rounds again", lambda: coordinator.round > left_at + 1)
        verdicts = [v for peer in peers for v in peer.rounds()]
        assert "alone" not in {v["outcome"] for v in verdicts}
        assert [peer.stop() for peer in peers] == ["stopped", "stopped"]
        receipts = [r for peer in peers for r in peer.said("receipt") if r["accepted"]]
        assert {receipt["share"] for receipt in receipts} == {0.0}
    finally:
        swarm.close()
