"""Passports on every call, and what becomes of a peer whose passport counts no more."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hivemind.p2p import P2P

from tests.swarm.intruder import Careless, Intruder
from tests.swarm.swarm import Member, Swarm
from tests.waiting import wait_for
from trainer.passport import Claims, Revocations, make_authority, sign, sign_revocations
from trainer.swarm.identity import load_or_make

pytestmark = pytest.mark.swarm


def revoke(swarm: Swarm, number: int, *devices: str) -> None:
    """Hands the coordinator such a list, as the site does."""
    signed = sign_revocations(Revocations(number=number, devices=devices), swarm.authority)
    draft = swarm.folder / "coordinator" / "revocations.new"
    draft.parent.mkdir(exist_ok=True)
    draft.write_text(signed.model_dump_json())
    draft.replace(draft.with_suffix(".json"))


@asynccontextmanager
async def intruder(swarm: Swarm, name: str, **claims):
    """Its name, peer id and calls; `claims` and `authority` are what is wrong with its passport."""
    identity = load_or_make(swarm.folder / f"{name}.key")
    authority = claims.pop("authority", swarm.authority)
    good = {
        "user": name,
        "device": name,
        "peer_key": identity.public_text,
        "collaboration": swarm.recipe.collaboration,
        "expires_at": time.time() + 3600,
    }
    passport = sign(Claims(**{**good, **claims}), authority)
    p2p = await P2P.create(
        initial_peers=[swarm.address],
        identity_path=str(identity.path),
        host_maddrs=["/ip4/127.0.0.1/tcp/0"],
        check_if_identity_free=False,
    )
    try:
        careless = Careless(identity, passport)
        yield identity.peer_id, Intruder(p2p, swarm.address, swarm.recipe.swarm_id(), careless)
    finally:
        await p2p.shutdown()


async def test_who_has_no_valid_passport_gets_no_answer_to_any_call_and_is_told_why(
    swarm: Swarm, tmp_path: Path
):
    revoke(swarm, 1, "revoked")
    coordinator, peer = swarm.open(), swarm.add("a")
    wait_for("the list", lambda: "revocation list 1 names 1 devices" in coordinator.log())
    cases = {
        "forged": {"authority": make_authority(tmp_path / "forger.pem")},
        "expired": {"expires_at": time.time() - 10},
        "foreign": {"collaboration": "another"},
        "borrowed": {"peer_key": load_or_make(tmp_path / "other.key").public_text},
        "revoked": {},
    }
    reasons = {
        "forged": "was not signed by the site",
        "expired": "expired",
        "foreign": "is for another",
        "borrowed": "is another peer's",
        "revoked": "was revoked (list 1)",
    }
    for name, claims in cases.items():
        async with intruder(swarm, name, **claims) as (peer_id, caller):
            assert reasons[name] in await caller.introduce()
            for call in (caller.join_group, caller.aggregate_part, caller.download_state):
                assert "no passport was shown" in await call(), name
            by_dht = "not signed with the key" if name == "borrowed" else reasons[name]
            assert by_dht in await caller.ask_the_dht()
            assert f"refused the introduction of {peer_id}: " in coordinator.log()
    async with intruder(swarm, "good") as (_, caller):
        assert "no passport was shown" in await caller.download_state()
        assert await caller.introduce() == ""
        for call in (caller.join_group, caller.aggregate_part, caller.download_state):
            assert await call() == ""
        assert await caller.ask_the_dht() == ""
    last = peer.round
    wait_for("the next rounds", lambda: peer.round >= last + 2)
    assert "Traceback" not in coordinator.log()


def members(one: Member) -> int:
    verdicts = one.rounds()
    return verdicts[-1]["members"] if verdicts else 0


def test_a_revoked_peer_is_out_within_a_minute_and_back_when_the_list_names_it_no_more(
    swarm: Swarm,
):
    coordinator = swarm.open()
    honest, revoked = swarm.add("honest"), swarm.add("revoked")
    wait_for("rounds of both", lambda: members(coordinator) == 2)
    revoke(swarm, 5, "revoked")
    for one in (coordinator, honest):
        wait_for(f"the list at {one.name}", lambda o=one: "list 5 names" in o.log())
    wait_for("word of it", lambda: "this device was revoked (list 5)" in revoked.log())
    since = coordinator.round
    wait_for("rounds without it", lambda: coordinator.round >= since + 3)
    late = [v for one in (coordinator, honest) for v in one.rounds() if v["round"] > since + 1]
    assert {v["members"] for v in late} == {1}
    revoke(swarm, 6)
    wait_for("its return", lambda: members(coordinator) == 2)
