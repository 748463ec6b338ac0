"""Which shards of the recipe's texts this device reads: leased from the site, and kept leased."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from trainer.agent.holding import Holding
from trainer.agent.join import Api
from trainer.agent.ledger import Ledger
from trainer.agent.link import delay_s
from trainer.data.marks import Held, Place
from trainer.grant import JoinGrant, Lease, ShardRequest
from trainer.launcher import web
from trainer.sources.base import SourceUnavailable
from trainer.swarm import clock

ANSWER_S = 5.0  # training waits no longer for the next shard
ASK_AGAIN_S = 60.0  # while the site has none for this device
IN_DOUBT = (
    "the site has not answered this device for longer than its part of the text was leased to it, "
    "and may have given the part to another device; it reads on once the site answers"
)
log = logging.getLogger(__name__)


class ShardHolder:
    """The engine's `Shards`. A thread renews the leases while the device trains.

    While the site is away, or has no other shard, the device keeps the one it has: nobody else
    can have got it. At its end it reads it again. When the lease has run out and the site has heard
    others since, it reads nothing of this text until the site answers.
    """

    def __init__(self, api: Api, slug: str, grant: JoinGrant, path: Path | None = None) -> None:
        """At `path` is kept what the swarm has not got yet, for the next start."""
        self._api, self._slug, self._sha256 = api, slug, grant.recipe_sha256
        self._ledger = Ledger(path, grant.recipe_sha256)
        self._holdings = self._ledger.read(len(grant.recipe.texts))
        self._is_away = False
        self._heard_at: Callable[[], float | None] = lambda: None
        self._asking, self._changing = threading.Lock(), threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="shards", daemon=True)

    # ------------------------------------------------------------ for those who prepare batches
    def begin(self, text: int) -> Held:
        """Raises SourceUnavailable while another device may have got it."""
        self.tenure(text)
        with self._changing:
            return self._holdings[text].begin()

    def held(self, text: int) -> Held:
        return self._holdings[text].now

    def finish(self, text: int, lease: Lease) -> None:
        """Gets the next shard. Where there is none now, the same one begins anew."""
        holding = self._holdings[text]
        with self._changing:
            if not holding.read(lease):
                return
            holding.finished = holding.finished or lease
        if not self._is_away:
            self._ask(text)
        with self._changing:
            if holding.leased is not None and holding.leased.is_of(lease):
                holding.again()

    # ------------------------------------------------------------ for the one that trains
    def heed(self, heard_at: Callable[[], float | None]) -> None:
        self._heard_at = heard_at

    def tenure(self, text: int) -> int:
        """Asks where that is due: at the first time, and after the machine was asleep for long.

        Raises SourceUnavailable while another device may have got it.
        """
        holding = self._holdings[text]
        if not holding.asked:
            holding.asked = True
            self._ask(text)
            if not self._thread.is_alive():
                self._thread.start()
        elif holding.is_leased and clock.now() > holding.until:
            self._look_after(text)
        return holding.now.tenure

    def _look_after(self, text: int) -> None:
        """Of a lease that ran out. Where others are heard, the site may hear us, too."""
        if not self._is_away and self._ask(text):
            return
        holding, heard_at = self._holdings[text], self._heard_at()
        with self._changing:
            is_over = holding.is_leased and clock.now() > holding.until
            is_ours = not is_over or holding.lasts(heard_at)
        if not is_ours and not self._ask(text):
            raise SourceUnavailable(IN_DOUBT)

    def take(self, text: int, place: Place) -> None:
        with self._changing:
            self._holdings[text].take(place)

    def keep(self, text: int, place: Place) -> None:
        with self._changing:
            self._holdings[text].keep(place)
            self._ledger.write(self._holdings)

    def rewind(self) -> None:
        with self._changing:
            for holding in self._holdings:
                holding.rewind()

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
            if holding.is_leased and not self._is_away:
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
        leased = [h.leased.lease.renew_s for h in self._holdings if h.leased]
        return min(leased, default=ASK_AGAIN_S)

    def _ask(self, text: int, *, leaving: bool = False) -> bool:
        """Whether the site answered. One at a time, so that an answer is never older than ours."""
        with self._asking:
            with self._changing:
                request = self._request(text, leaving)
            asked_at = clock.now()
            try:
                answer = self._api.shard(self._slug, request, ANSWER_S)
            except (web.Unreachable, web.Refusal) as error:
                self._is_away = True
                log.info("text %d: the site leases no shard now: %s", text, error)
                return False
            self._is_away = False
            if not leaving:
                with self._changing:
                    self._holdings[text].hear(answer, asked_at)
                    self._ledger.write(self._holdings)
            return True

    def _request(self, text: int, leaving: bool) -> ShardRequest:
        holding = self._holdings[text]
        present, finished = holding.claim or holding.leased, holding.finished
        lease = finished or (present.at(present.kept) if present else None)
        return ShardRequest(
            recipe_sha256=self._sha256,
            text=text,
            shard=lease.shard if lease else None,
            passes=lease.passes if lease else None,
            position=lease.position if lease else 0,
            skip=lease.skip if lease else 0,
            finished=finished is not None,
            leaving=leaving,
        )


def _words(holding: Holding, name: str) -> str:
    if not holding.is_leased:
        return f"all of {name}: {holding.reason}" if holding.reason else ""
    if holding.in_doubt:
        return f"nothing of {name} until the site answers: another device may have got its part"
    assert holding.leased is not None
    lease, done = holding.leased.lease, holding.leased.taken.position
    share = f", {done / holding.total:.0%} read" if holding.total else ""
    return f"part {lease.shard + 1} of {lease.num_shards} of {name}{share}"
