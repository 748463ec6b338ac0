"""What a gate makes of passports and revocation lists, without a swarm."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hivemind.p2p import P2PHandlerError
from hivemind.proto.auth_pb2 import AccessToken

from trainer.passport import (
    Claims,
    InvalidPassport,
    RevocationList,
    Revocations,
    make_authority,
    public_text,
    sign,
    sign_revocations,
)
from trainer.swarm import clock
from trainer.swarm.admission import Admission
from trainer.swarm.door import SHOWN_S, Door, Refused
from trainer.swarm.identity import load_or_make
from trainer.swarm.notices import pages_of
from trainer.swarm.revoked import Revoked


class Place:
    """One device: its key, passport, list of the revoked and door."""

    def __init__(self, folder: Path, name: str, authority, **claims) -> None:
        self.name, self._authority = name, authority
        self.key = load_or_make(folder / f"{name}.key")
        self.revoked = Revoked(folder / f"{name}.revoked.json", public_text(authority))
        self.admission = Admission(
            folder / f"{name}.json", self.revoked, public_text(authority), "demo"
        )
        self.show(**claims)
        self.door = Door(self.admission)

    def show(self, by=None, **claims) -> None:
        good = {
            "user": "7",
            "device": self.name,
            "peer_key": self.key.public_text,
            "collaboration": "demo",
            "expires_at": time.time() + 3600,
        }
        self.admission.show(sign(Claims(**{**good, **claims}), by or self._authority))

    def revoke(self, number: int, *devices: str) -> bool:
        return self.revoked.take(listed(self._authority, number, *devices))

    async def visit(self, host: Place) -> None:
        """Introduces itself at the host's door, as its stub does over libp2p."""

        async def introduce(token: AccessToken, timeout: float) -> AccessToken:
            try:
                return host.door.let_in(self.key.peer_id, token)
            except InvalidPassport as why:
                raise P2PHandlerError(repr(why)) from why

        await self.door.enter(host.key.peer_id, introduce)


def listed(authority, number: int, *devices: str) -> RevocationList:
    return sign_revocations(Revocations(number=number, devices=devices), authority)


@pytest.fixture
def authority(tmp_path):
    return make_authority(tmp_path / "authority.pem")


@pytest.fixture
def host(tmp_path, authority):
    return Place(tmp_path, "host", authority)


@pytest.fixture
def guest(tmp_path, authority):
    return Place(tmp_path, "guest", authority)


async def test_two_that_have_shown_their_passports_may_call_each_other(host, guest):
    assert host.door.problem(guest.key.peer_id, "rpc_join_group") == "no passport was shown"
    await guest.visit(host)
    assert host.door.problem(guest.key.peer_id, "rpc_join_group") == ""
    assert guest.door.problem(host.key.peer_id, "rpc_join_group") == "no passport was shown"


WRONG = [
    ({"expires_at": time.time() - 5}, "this passport expired"),
    ({"collaboration": "another"}, "is for another, not demo"),
]


@pytest.mark.parametrize(("claims", "reason"), WRONG)
async def test_a_caller_whose_passport_does_not_count_is_told_why(host, guest, claims, reason):
    guest.show(**claims)
    with pytest.raises(Refused, match=f"{host.key.peer_id} refuses this peer: .*{reason}"):
        await guest.visit(host)
    assert host.door.problem(guest.key.peer_id, "rpc_download_state") == "no passport was shown"


@pytest.mark.parametrize(("claims", "reason"), WRONG)
async def test_an_answerer_whose_passport_does_not_count_is_not_called(host, guest, claims, reason):
    host.show(**claims)
    with pytest.raises(Refused, match=f"{host.key.peer_id} may not take part: .*{reason}"):
        await guest.visit(host)
    assert list(guest.door.refusals) == [host.key.peer_id]
    host.show()
    await guest.visit(host)
    assert guest.door.refusals == {}


async def test_a_forged_or_borrowed_passport_opens_no_door(tmp_path, host, guest, authority):
    guest.show(by=make_authority(tmp_path / "forger.pem"))
    with pytest.raises(Refused, match="not signed by the site"):
        await guest.visit(host)
    guest.show(peer_key=host.key.public_text)
    with pytest.raises(Refused, match="another peer's"):
        await guest.visit(host)
    token = guest.admission.own()
    token.public_key = guest.key.public_text.encode()
    with pytest.raises(InvalidPassport, match="names another key"):
        host.admission.check(token)
    with pytest.raises(InvalidPassport, match="no passport was shown"):
        host.admission.check(AccessToken())


async def test_who_is_inside_is_out_when_the_passport_expires_or_is_revoked(
    host, guest, monkeypatch
):
    await guest.visit(host)
    assert host.revoke(1, "guest")
    problem = host.door.problem(guest.key.peer_id, "rpc_aggregate_part")
    assert problem == "this device was revoked (list 1)"
    assert host.revoke(2)
    guest.door = Door(guest.admission)  # some seconds later: it introduces itself again
    await guest.visit(host)
    assert host.door.problem(guest.key.peer_id, "rpc_aggregate_part") == ""
    later = time.time() + 3601
    monkeypatch.setattr(clock, "now", lambda: later)
    assert "expired" in host.door.problem(guest.key.peer_id, "rpc_aggregate_part")


async def test_an_introduction_holds_for_a_few_calls_and_then_is_made_again(
    host, guest, monkeypatch
):
    await guest.visit(host)
    host.door = Door(host.admission)  # it was started anew and has forgotten its guests
    await guest.visit(host)
    assert host.door.problem(guest.key.peer_id, "rpc_join_group") == "no passport was shown"
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + SHOWN_S)
    await guest.visit(host)
    assert host.door.problem(guest.key.peer_id, "rpc_join_group") == ""


def test_a_renewed_passport_is_the_one_that_is_shown(guest):
    first = guest.admission.own()
    assert guest.admission.own() is first
    guest.show(expires_at=time.time() + 7200)
    assert guest.admission.own() is not first
    assert float(guest.admission.own().expiration_time) > float(first.expiration_time)


# ---------------------------------------------------------------- lists
def test_only_a_list_of_the_site_with_a_higher_number_is_taken(tmp_path, host, authority):
    assert host.revoked.number == 0
    assert host.revoke(4, "a", "b")
    assert not host.revoke(4)
    assert not host.revoke(3, "c")
    assert "a" in host.revoked
    assert "c" not in host.revoked
    with pytest.raises(ValueError, match="not signed by the site"):
        host.revoked.take(listed(make_authority(tmp_path / "forger.pem"), 9, "a"))
    good = listed(authority, 9)
    for bad in (
        good.model_copy(update={"revocations": good.revocations.replace("9", "10")}),
        good.model_copy(update={"signature": ""}),
        RevocationList(revocations="{}", signature=good.signature),
    ):
        with pytest.raises(ValueError, match="not signed by the site"):
            host.revoked.take(bad)
    assert host.revoked.number == 4
    assert host.revoke(5)
    assert "a" not in host.revoked


def test_a_list_is_seen_by_other_processes_and_after_a_restart(tmp_path, host, authority):
    elsewhere = Revoked(tmp_path / "host.revoked.json", public_text(authority))
    assert "a" not in elsewhere
    assert host.revoke(2, "a")
    assert "a" in elsewhere
    assert not elsewhere.take(listed(authority, 1))
    (tmp_path / "host.revoked.json").write_text("damaged")
    assert "a" in elsewhere


def test_a_passport_is_no_list_and_a_list_is_no_passport(host, authority):
    passport = sign(
        Claims(user="1", device="d", peer_key="k", collaboration="demo", expires_at=1e10),
        authority,
    )
    with pytest.raises(ValueError, match="number"):
        host.revoked.take(RevocationList(revocations=passport.claims, signature=passport.signature))
    signed = listed(authority, 1)
    token = AccessToken(username=signed.revocations, signature=signed.signature.encode())
    with pytest.raises(InvalidPassport):
        host.admission.check(token)


def test_a_long_list_travels_in_pages_that_the_dht_can_carry(authority):
    signed = listed(authority, 3, *(f"{number:032x}" for number in range(500)))
    pages = pages_of(signed)
    assert len(pages) > 5
    assert all(total == len(pages) and len(part) < 3000 for total, part in pages)
    joined = "".join(part for _, part in pages)
    assert RevocationList.model_validate_json(joined) == signed
