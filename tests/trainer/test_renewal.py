"""Passports are renewed while the site is there, and outlive it while it is not."""

from __future__ import annotations

import json
import time

import pytest

from tests.answering import Answering
from tests.waiting import wait_for
from trainer.agent import join, news
from trainer.agent.join import Api, PassportHolder
from trainer.agent.wishes import Wishes
from trainer.passport import Claims, Revocations, make_authority, sign, sign_revocations
from trainer.wire import LeaveCause, Role, Wish

LIFE_S = 2.0


class Site(Answering):
    """Issues passports of two seconds, or answers whatever `says` tells it to."""

    def __init__(self, folder) -> None:
        self.authority = make_authority(folder / "authority.pem")
        self.says: tuple[int, bytes] | None = None
        self.list_number = 1
        self.num_calls = 0

    def passport(self):
        claims = Claims(
            user="1",
            device="d",
            peer_key="k",
            collaboration="demo",
            expires_at=time.time() + LIFE_S,
        )
        return sign(claims, self.authority)

    def revocations(self):
        revoked = Revocations(number=self.list_number, devices=("lost",))
        return sign_revocations(revoked, self.authority)

    def answer(self, method, path, body):
        self.num_calls += 1
        message = self.passport() if method == "POST" else self.revocations()
        return self.says or (200, message.model_dump_json().encode())

    @property
    def api(self) -> Api:
        return Api(self.url, "token")


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setattr(join, "SHORTEST_RENEWAL_S", 0.1)
    monkeypatch.setattr(join, "delay_s", lambda failures: 0.1)
    site = Site(tmp_path).start()
    yield site
    site.stop()


@pytest.fixture
def wishes(tmp_path):
    return Wishes(tmp_path / "wish.json")


@pytest.fixture
def holder(site, wishes):
    holder = PassportHolder(site.api, "demo", "ssh-rsa AAAA", site.passport(), 0.0)
    holder.start(wishes)
    yield holder
    holder.stop()


def test_a_passport_is_renewed_before_it_runs_out_again_and_again(holder):
    seen = []
    while len(seen) < 3:
        passport = holder()
        assert passport.read().expires_at > time.time()
        if passport not in seen:
            seen.append(passport)
        time.sleep(0.02)


def test_a_site_that_is_gone_costs_nobody_the_passport_and_is_asked_again(site, holder, wishes):
    site.stop()
    held = holder()
    wait_for("expiry", lambda: held.read().expires_at < time.time())
    assert holder() == held
    assert wishes.current().wish is Wish.RUN
    site.start()
    wait_for("renewal", lambda: holder() != held)
    assert holder().read().expires_at > time.time()


@pytest.mark.parametrize(
    "says",
    [
        (502, b"<html>bad gateway</html>"),
        (503, b""),
        (200, b"<html>maintenance</html>"),
        (200, b"{}"),
        (404, b"nothing here"),
        (409, json.dumps({"error": "paused", "kind": ""}).encode()),
        (429, json.dumps({"error": "too fast", "kind": "wait"}).encode()),
    ],
    ids=lambda says: f"{says[0]} {says[1].decode()[:10]}",
)
def test_no_fault_of_the_site_throws_a_peer_out(site, holder, wishes, says):
    site.says = says
    asked = site.num_calls
    wait_for("three calls", lambda: site.num_calls >= asked + 3)
    held = holder()
    assert wishes.current().wish is Wish.RUN
    site.says = None
    wait_for("renewal", lambda: holder() != held)


@pytest.mark.parametrize("kind", ["revoked", "banned"])
def test_who_is_shut_out_stops_with_the_sites_words(site, holder, wishes, kind):
    site.says = 403, json.dumps({"error": "It was stolen.", "kind": kind}).encode()
    wait_for("stop", lambda: wishes.current().wish is Wish.STOP)
    assert wishes.current().cause is LeaveCause(kind)
    assert wishes.current().reason == "It was stolen."


def test_a_coordinator_follows_the_list_and_keeps_it_while_the_site_is_gone(
    site, monkeypatch, caplog
):
    caplog.set_level("INFO", logger="trainer")  # a rehearsal in this process silences it
    monkeypatch.setattr(news, "ASK_EVERY_S", 0.05)
    newest = news.follow("the revocation list", site.api.revocations, Role.COORDINATOR)
    wait_for("list", lambda: newest() is not None)
    assert newest() == site.revocations()
    site.stop()
    wait_for("failure", lambda: "the revocation list stays as it is" in caplog.text)
    assert newest() is not None
    site.list_number = 2
    site.start()
    wait_for("next list", lambda: newest() == site.revocations())
    assert news.follow("the revocation list", site.api.revocations, Role.PEER)() is None
