"""Agents of which some, or all, have lost the way to the site, and what they may read then."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from django.utils import timezone

from tests.ports import free_port
from tests.rows import rows_of
from tests.waiting import wait_for
from tests.web.test_shards_read import ROWS, Volunteer
from trainer.agent import shards
from trainer.agent.join import Api
from trainer.agent.news import News
from trainer.recipe import Round
from trainer.sources.base import SourceUnavailable
from trainer.swarm import clock
from trainer.swarm.progress import Stage, Standing
from trainer.swarm.records import Records
from trainer.wire import Role
from webapp.collaborations.services import coordinator_device
from webapp.shards import services

pytestmark = pytest.mark.django_db(transaction=True)
STEP_S = 20
LEASE_S = int(services.LEASE.total_seconds())


class SetClock(clock.DeviceClock):
    """Stands still until it is set ahead."""

    at = 1_790_000_000.0

    def now(self) -> float:
        return self.at


class WatchedApi(Api):
    """Notes when an answer came, and may be cut off from the site, between two calls."""

    answered_at = 0.0

    def __init__(self, site, token) -> None:
        super().__init__(site, token)
        self._way, self.is_cut_off = self.site, False
        self._calling = threading.Lock()

    def cut_off(self, is_cut_off=True) -> None:
        with self._calling:
            self.is_cut_off = is_cut_off
            self.site = f"http://127.0.0.1:{free_port()}" if is_cut_off else self._way

    def shard(self, *asked):
        with self._calling:
            asked_at = clock.now()
            answer = super().shard(*asked)
            self.answered_at = asked_at
            return answer


class Reading(Volunteer):
    """Reads row by row."""

    def step(self) -> int | None:
        """Which part the next row that it reads is of; None: it reads nothing now."""
        try:
            self.seen.append(next(self._rows).text)
        except SourceUnavailable as error:
            self.waits_for = str(error)
            self._open()
            return None
        return int(self.seen[-1].split()[1]) % 2

    def begin(self, heard_at) -> None:
        self.seen: list[str] = []
        self.holder.heed(heard_at)
        self._open()

    def _open(self) -> None:
        self._rows = rows_of(self.text, self.holder)


class Around:
    """A text of two parts, the site, its coordinator and volunteers, all under one clock."""

    def __init__(self, site, collaboration, path, time) -> None:
        self._place, self._time = (site, collaboration, path), time
        _, token = coordinator_device(collaboration)
        self.coordinator = WatchedApi(site, token)
        self._news = News("it", lambda: self.coordinator.heard(collaboration.slug))
        self._records = Records(Round(), {"C"})
        self.volunteers: list[Reading] = []

    def volunteer(self, name) -> Reading:
        made = Reading(name, *self._place, api=WatchedApi)
        made.begin(self._heard_at)
        made.step()
        self.volunteers.append(made)
        return made

    def cut_off(self, *names) -> None:
        """These, and the coordinator where it is one of them, and nobody else."""
        for one in self.volunteers:
            one.api.cut_off(one.name in names)
        self.coordinator.cut_off("coordinator" in names)

    def _heard_at(self) -> float | None:
        """As it gets from the site to a peer."""
        self._news.ask()
        news, now = self._news(), clock.now()
        facts = {"role": Role.COORDINATOR, "stage": Stage.TRAINING, "started": now, "at": now}
        said = Standing(round=1, heard_at=news.heard_at if news else None, **facts)
        self._records.take({"C": said.model_dump(mode="json")}, now)
        return self._records.heard_at

    def pass_time(self, seconds) -> list[dict[str, int | None]]:
        """Which part each volunteer reads of, by name, at every step of that time."""
        told = []
        for _ in range(seconds // STEP_S):
            self._time.at += STEP_S
            for one in self.volunteers:
                if not one.api.is_cut_off:
                    wait_for("answer", lambda api=one.api: api.answered_at == self._time.at)
            told.append({one.name: one.step() for one in self.volunteers})
        return told


@pytest.fixture
def around(live_server, collaboration, tmp_path, monkeypatch):
    monkeypatch.setattr(services, "FEWEST", 2)
    monkeypatch.setattr(services, "RENEW_S", 0.3)
    monkeypatch.setattr(shards, "ASK_AGAIN_S", 0.3)
    monkeypatch.setattr(shards, "delay_s", lambda failures: 0.3)
    path = tmp_path / "text"
    path.write_text("".join(f"row {number}\n" for number in range(ROWS)))
    time = SetClock()
    before = clock.follow(time)
    monkeypatch.setattr(timezone, "now", lambda: datetime.fromtimestamp(time.at, UTC))
    made = Around(live_server.url, collaboration, path, time)
    yield made
    for one in made.volunteers:
        one.holder.leave()
    clock.follow(before)


@pytest.mark.heavy
def test_who_alone_is_cut_off_stops_reading_before_another_gets_its_part(around):
    anna, bela = around.volunteer("anna"), around.volunteer("bela")
    assert around.pass_time(STEP_S * 2) == [{"anna": 0, "bela": 1}] * 2
    cyril = around.volunteer("cyril")  # all parts are taken: it reads everything
    around.cut_off("anna")
    told = around.pass_time(LEASE_S)
    assert [step["anna"] for step in told[:-1]] == [0] * (len(told) - 1)
    told = around.pass_time(LEASE_S)
    assert {(step["anna"], step["bela"], step["cyril"]) for step in told} == {(None, 1, 0)}
    assert "may have given the part to another device" in anna.waits_for
    assert anna.holder.words().startswith("nothing of the text until the site answers")
    assert cyril.holder.words().startswith("part 1 of 2")

    bela.holder.leave()
    around.volunteers.remove(bela)
    around.cut_off()
    around.pass_time(STEP_S)
    assert around.pass_time(STEP_S * 2) == [{"anna": 1, "cyril": 0}] * 2


@pytest.mark.heavy
def test_while_the_site_is_away_from_everybody_all_go_on_and_each_keeps_its_part(around):
    anna, bela = around.volunteer("anna"), around.volunteer("bela")
    around.pass_time(STEP_S * 2)
    around.cut_off("anna", "bela", "coordinator")
    assert around.pass_time(LEASE_S * 6) == [{"anna": 0, "bela": 1}] * (LEASE_S * 6 // STEP_S)
    around.cut_off("anna")
    cyril = around.volunteer("cyril")
    told = around.pass_time(LEASE_S - STEP_S * 2)
    assert [step["bela"] for step in told] == [1] * len(told)
    assert told[0]["anna"] == 0 and told[-1]["anna"] is None  # it cannot know for how long
    assert not cyril.holder.words().startswith("part")  # both are held by others
    around.cut_off()
    assert around.pass_time(STEP_S)[0]["anna"] == 0
    for one in (anna, bela):
        assert len(set(one.seen)) == len(one.seen)


def test_a_site_that_only_its_coordinator_reaches_stops_nobody(around):
    around.volunteer("anna"), around.volunteer("bela")
    around.pass_time(STEP_S * 2)
    around.cut_off("anna", "bela")
    told = around.pass_time(LEASE_S * 3)
    assert {(step["anna"], step["bela"]) for step in told} == {(0, 1)}
