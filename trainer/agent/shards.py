"""Which shards of the recipe's texts this device reads: leased from the site, and kept leased."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from trainer.agent.join import Api
from trainer.agent.link import delay_s
from trainer.grant import SILENCE_S, JoinGrant, Lease, ShardAnswer, ShardRequest
from trainer.launcher import web
from trainer.sources.base import SourceUnavailable
from trainer.swarm import clock

ANSWER_S = 5.0  # training waits no longer for the next shard
ASK_AGAIN_S = 60.0  # while the site has none for this device
SLACK_S = 60.0  # until all know, by the coordinator, that the site heard somebody; at most 40 s
IN_DOUBT = (
    "the site has not answered this device for longer than its part of the text was leased to it, "
    "and may have given the part to another device; it reads on once the site answers"
)
log = logging.getLogger(__name__)


@dataclass
class Holding:
    """One text: the lease, how far in it we are, and until when it surely is ours (site time)."""

    lease: Lease | None = None
    asked: bool = False
    finished: bool = False
    done: int = 0
    total: int = 0
    until: float = 0.0
    in_doubt: bool = False
    reason: str = ""

    def take(self, answer: ShardAnswer, asked_at: float, told: ShardRequest) -> None:
        """A renewed lease stays the object it was, for that is how the reader knows it."""
        lease, self.reason, self.in_doubt = answer.lease, answer.reason, False
        if lease is not None:
            self.until = asked_at + lease.valid_s
            if self._is_renewed(lease, told):
                return
        self.lease, self.finished = lease, False
        self.done, self.total = (lease.position if lease else 0), 0

    def _is_renewed(self, lease: Lease, told: ShardRequest) -> bool:
        """False also for the same shard, when another device had it and read on meanwhile."""
        if self.lease is None or told.finished or lease.shard != self.lease.shard:
            return False
        return lease.passes == self.lease.passes and lease.position <= told.position

    def keep(self, heard_at: float | None) -> bool:
        """Whether a lease that ran out is still ours; if so, for a while longer.

        It is when the site, as far as the swarm knows, has heard nobody since well before that, and
        for so long that its next answer to anybody renews all leases.
        """
        assert self.lease is not None
        now = clock.now()
        self.in_doubt = heard_at is not None and (
            heard_at + SLACK_S >= self.until or now - heard_at <= SILENCE_S + SLACK_S
        )
        if self.in_doubt:  # whoever reads it again goes on where we are
            self.lease = self.lease.model_copy(update={"position": self.done})
        else:
            self.until = now + self.lease.valid_s - SLACK_S
        return not self.in_doubt


class ShardHolder:
    """The engine's `Shards`. A thread renews the leases while the device trains.

    While the site is away, or has no other shard, the device keeps the one it has: nobody else
    can have got it. At its end it reads it again. When the lease has run out and the site has heard
    others since, it reads nothing of this text until the site answers.
    """

    def __init__(self, api: Api, slug: str, grant: JoinGrant) -> None:
        self._api, self._slug, self._sha256 = api, slug, grant.recipe_sha256
        self._holdings = [Holding() for _ in grant.recipe.texts]
        self._is_away = False
        self._heard_at: Callable[[], float | None] = lambda: None
        self._asking = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="shards", daemon=True)

    # ------------------------------------------------------------ for the thread that trains
    def heed(self, heard_at: Callable[[], float | None]) -> None:
        self._heard_at = heard_at

    def held(self, text: int) -> Lease | None:
        """Asks where that is due: at the first time, and after the machine was asleep for long.

        Raises SourceUnavailable while another device may have got it.
        """
        holding = self._holdings[text]
        if not holding.asked:
            holding.asked = True
            self._ask(text)
            if not self._thread.is_alive():
                self._thread.start()
        elif holding.lease is not None and clock.now() > holding.until:
            self._look_after(text)
        return holding.lease

    def _look_after(self, text: int) -> None:
        """Of a lease that ran out. Where others are heard, the site may hear us, too."""
        if not self._is_away and self._ask(text):
            return
        holding, heard_at = self._holdings[text], self._heard_at()
        with self._asking:
            is_over = holding.lease is not None and clock.now() > holding.until
            is_kept = not is_over or holding.keep(heard_at)
        if not is_kept and not self._ask(text):
            raise SourceUnavailable(IN_DOUBT)

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
            before, finished, asked_at = holding.lease, holding.finished, clock.now()
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
                holding.take(answer, asked_at, request)
            return True


def _words(holding: Holding, name: str) -> str:
    lease = holding.lease
    if lease is None:
        return f"all of {name}: {holding.reason}" if holding.reason else ""
    if holding.in_doubt:
        return f"nothing of {name} until the site answers: another device may have got its part"
    share = f", {holding.done / holding.total:.0%} read" if holding.total else ""
    return f"part {lease.shard + 1} of {lease.num_shards} of {name}{share}"
