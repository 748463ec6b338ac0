"""Which shards of the recipe's texts this device reads: leased from the site, and kept leased."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from trainer.agent.join import Api
from trainer.agent.link import delay_s
from trainer.grant import JoinGrant, Lease, ShardAnswer, ShardRequest
from trainer.launcher import web

ANSWER_S = 5.0  # training waits no longer for the next shard
ASK_AGAIN_S = 60.0  # while the site has none for this device
log = logging.getLogger(__name__)


@dataclass
class Holding:
    """One text: the lease, how far in it we are, and until when it surely is ours (wall clock)."""

    lease: Lease | None = None
    asked: bool = False
    finished: bool = False
    done: int = 0
    total: int = 0
    until: float = 0.0
    reason: str = ""

    def take(self, answer: ShardAnswer, is_next: bool) -> None:
        """A renewed lease stays the object it was, for that is how the reader knows it."""
        lease, self.reason = answer.lease, answer.reason
        if lease is not None:
            self.until = time.time() + lease.valid_s
            if self.lease is not None and lease.shard == self.lease.shard and not is_next:
                return
        self.lease, self.finished = lease, False
        self.done, self.total = (lease.position if lease else 0), 0


class ShardHolder:
    """The engine's `Shards`. A thread renews the leases while the device trains.

    While the site is away, or has no other shard, the device keeps the one it has: nobody else
    can have got it. At its end it reads it again.
    """

    def __init__(self, api: Api, slug: str, grant: JoinGrant) -> None:
        self._api, self._slug, self._sha256 = api, slug, grant.recipe_sha256
        self._holdings = [Holding() for _ in grant.recipe.texts]
        self._is_away = False
        self._asking = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="shards", daemon=True)

    # ------------------------------------------------------------ for the thread that trains
    def held(self, text: int) -> Lease | None:
        """Asks where that is due: at the first time, and after the machine was asleep for long."""
        holding = self._holdings[text]
        if not holding.asked:
            holding.asked = True
            self._ask(text)
            if not self._thread.is_alive():
                self._thread.start()
        elif holding.lease is not None and time.time() > holding.until and not self._is_away:
            self._ask(text)
        return holding.lease

    def read(self, text: int, lease: Lease, done: int, total: int) -> None:
        holding = self._holdings[text]
        if holding.lease is lease:
            holding.done, holding.total = done, total

    def finish(self, text: int, lease: Lease) -> None:
        """Gets the next shard. Where there is none now, the same one begins anew."""
        holding = self._holdings[text]
        with self._asking:
            if holding.lease is not lease:
                return
            holding.finished = True
        if not self._is_away:
            self._ask(text)
        with self._asking:
            if holding.lease is lease:
                again = {"passes": lease.passes + 1, "position": 0}
                holding.lease, holding.done = lease.model_copy(update=again), 0

    # ------------------------------------------------------------ for others
    def words(self) -> str:
        """What is read now, for the volunteer; "" before the first answer."""
        several = len(self._holdings) > 1
        return "; ".join(
            said
            for number, holding in enumerate(self._holdings, 1)
            if (said := _words(holding, f"text {number}" if several else "the text"))
        )

    def leave(self) -> None:
        """Gives everything back, so that nobody has to wait until it expires."""
        self._ended.set()
        for text, holding in enumerate(self._holdings):
            if holding.lease is not None and not self._is_away:
                self._ask(text, leaving=True)

    # ------------------------------------------------------------ with the site
    def _renew(self) -> None:
        wait_s, failures = self._renew_s(), 0
        while not self._ended.wait(wait_s):
            asked = [text for text, holding in enumerate(self._holdings) if holding.asked]
            if all(self._ask(text) for text in asked):
                failures, wait_s = 0, self._renew_s()
            else:
                wait_s = delay_s(failures)
                failures += 1

    def _renew_s(self) -> float:
        return min((h.lease.renew_s for h in self._holdings if h.lease), default=ASK_AGAIN_S)

    def _ask(self, text: int, *, leaving: bool = False) -> bool:
        """Whether the site answered. One at a time, so that an answer is never older than ours."""
        with self._asking:
            holding = self._holdings[text]
            before, finished = holding.lease, holding.finished
            request = ShardRequest(
                recipe_sha256=self._sha256,
                text=text,
                shard=before.shard if before else None,
                position=holding.done,
                finished=finished,
                leaving=leaving,
            )
            try:
                answer = self._api.shard(self._slug, request, ANSWER_S)
            except (web.Unreachable, web.Refusal) as error:
                self._is_away = True
                log.info("text %d: the site leases no shard now: %s", text, error)
                return False
            self._is_away = False
            if not leaving:
                holding.take(answer, is_next=finished)
            return True


def _words(holding: Holding, name: str) -> str:
    lease = holding.lease
    if lease is None:
        return f"all of {name}: {holding.reason}" if holding.reason else ""
    share = f", {holding.done / holding.total:.0%} read" if holding.total else ""
    return f"part {lease.shard + 1} of {lease.num_shards} of {name}{share}"
