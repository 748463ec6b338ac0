"""Enrolling, joining and keeping the passport fresh, over the site's HTTP API."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from trainer import __version__
from trainer.agent.link import delay_s
from trainer.agent.wishes import Wishes
from trainer.grant import (
    DialBack,
    DialBackRequest,
    Enrolled,
    EnrolRequest,
    EvaluationAnswer,
    EvaluationRequest,
    Heard,
    JoinGrant,
    JoinRequest,
    Placed,
    PlacementRequest,
    ShardAnswer,
    ShardRequest,
)
from trainer.launcher import web
from trainer.launcher.machine import facts
from trainer.passport import Passport, RevocationList
from trainer.recipe import Recipe
from trainer.wire import WIRE_VERSION, LeaveCause, Machine, Wish

log = logging.getLogger(__name__)
Reply = TypeVar("Reply", bound=BaseModel)
Result = TypeVar("Result")
RENEW_AT = 0.5  # of the time a passport has left when it is issued
SHORTEST_RENEWAL_S = 5.0
LOOK_EVERY_S = 0.2
FINAL = {
    "revoked": LeaveCause.REVOKED,
    "banned": LeaveCause.BANNED,
    "forbidden": LeaveCause.REVOKED,
    "update": LeaveCause.REVOKED,
}


class Stopped(Exception):
    """It is no longer wanted; the reason is in the wishes."""


class Api:
    """The device's calls. All raise web.Unreachable (try again) or web.Refusal (in words)."""

    def __init__(self, site: str, token: str = "") -> None:
        self.site = site.rstrip("/")
        self.token = token

    def _call(
        self,
        path: str,
        reply: type[Reply],
        body: BaseModel | None = None,
        timeout_s: float = web.TIMEOUT_S,
    ) -> Reply:
        url = f"{self.site}/api/v1/{path}"
        content: Any = body.model_dump(mode="json") if body else None
        text = web.call(url, token=self.token, body=content, timeout_s=timeout_s)
        try:
            return reply.model_validate_json(text)
        except ValidationError as error:
            log.info("%s: %s", url, error)
            raise web.Refusal(
                200,
                f"{self.site} answered with something that this agent does not understand.",
                "Check the address; if it is right, download a new launcher on the Join page.",
            ) from error

    def enrol(self, code: str, machine: Machine) -> Enrolled:
        return self._call("device/enrol", Enrolled, EnrolRequest(code=code, machine=machine))

    def placement(self) -> Placed:
        return self._call("device/placement", Placed, PlacementRequest(machine=Machine(**facts())))

    def join(self, slug: str, peer_key: str) -> JoinGrant:
        return self._call(f"device/collaborations/{slug}/join", JoinGrant, _request(peer_key))

    def recipe(self, slug: str) -> Recipe:
        """What joining would be about."""
        return self._call(f"device/collaborations/{slug}/recipe", Recipe)

    def dial_back(self, port: int, word: str) -> DialBack:
        return self._call("device/dialback", DialBack, DialBackRequest(port=port, word=word))

    def revocations(self) -> RevocationList:
        return self._call("device/revocations", RevocationList)

    def heard(self, slug: str) -> Heard:
        return self._call(f"device/collaborations/{slug}/shards", Heard)

    def passport(self, slug: str, peer_key: str) -> Passport:
        return self._call(f"device/collaborations/{slug}/passport", Passport, _request(peer_key))

    def evaluation(self, slug: str, request: EvaluationRequest) -> EvaluationAnswer:
        path = f"device/collaborations/{slug}/evaluation"
        return self._call(path, EvaluationAnswer, request)

    def shard(self, slug: str, request: ShardRequest, timeout_s: float) -> ShardAnswer:
        path = f"device/collaborations/{slug}/shards"
        return self._call(path, ShardAnswer, request, timeout_s)


def _request(peer_key: str) -> JoinRequest:
    return JoinRequest(
        wire_version=WIRE_VERSION, agent_version=__version__, peer_key=peer_key.strip()
    )


def unless_stopped(act: Callable[[], Result], wishes: Wishes) -> Result:
    """The act's result. Raises Stopped when it is told to stop, and leaves the act to itself: no
    call can be broken off that waits for a slow site."""
    outcome: Future[Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(act())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="act", daemon=True).start()
    while not wait([outcome], LOOK_EVERY_S).done:
        if wishes.current().wish is Wish.STOP:
            raise Stopped
    return outcome.result()


def persist(
    act: Callable[[], Result],
    wishes: Wishes,
    *,
    waiting: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> Result:
    """The act's result, however long the site is away. Raises Stopped when it is told to stop."""
    failures = 0
    while wishes.current().wish is not Wish.STOP:
        try:
            return unless_stopped(act, wishes)
        except (web.Unreachable, web.Damaged) as error:
            asked_s = error.retry_after_s if isinstance(error, web.Unreachable) else None
            if asked_s is None:
                wait_s = delay_s(min(failures, 3))
                failures += 1
            else:  # the site is there and knows how long; spread, so that not all come at once
                wait_s = asked_s * random.uniform(1, 2)  # noqa: S311
            log.info("%s Trying again in %.0f s.", error, wait_s)
            waiting(f"{error} Trying again in {wait_s:.0f} s.")
        until = time.monotonic() + wait_s
        while (left_s := until - time.monotonic()) > 0 and wishes.current().wish is not Wish.STOP:
            pause(min(left_s, 0.2))
    raise Stopped


class PassportHolder:
    """The newest passport; renewed in a thread at half of its life, again and again."""

    def __init__(self, api: Api, slug: str, peer_key: str, first: Passport, offset_s: float):
        self._api, self._slug, self._peer_key = api, slug, peer_key
        self._passport = first
        self._offset_s = offset_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="passport", daemon=True)

    def __call__(self) -> Passport:
        return self._passport

    def start(self, wishes: Wishes) -> None:
        self._wishes = wishes
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def _left_s(self) -> float:
        return self._passport.read().expires_at - (time.time() + self._offset_s)

    def _renew(self) -> None:
        wait_s = max(self._left_s() * RENEW_AT, SHORTEST_RENEWAL_S)
        failures = 0
        while not self._ended.wait(wait_s):
            try:
                self._passport = self._api.passport(self._slug, self._peer_key)
                failures, wait_s = 0, max(self._left_s() * RENEW_AT, SHORTEST_RENEWAL_S)
            except web.Unreachable as error:
                wait_s = delay_s(failures)
                failures += 1
                log.info("the passport is not renewed yet: %s", error)
            except web.Refusal as refusal:
                if refusal.status == 401 or refusal.kind in FINAL:
                    self._wishes.stop(str(refusal), FINAL.get(refusal.kind, LeaveCause.REVOKED))
                    return
                log.info("the site gives no new passport: %s", refusal)
                wait_s = delay_s(3)
