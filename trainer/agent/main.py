"""One session of one agent: look, join, fetch, take part, say goodbye."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import TypeVar

from trainer import __version__
from trainer.agent import ledger, restarts
from trainer.agent.evaluating import IN_WORDS, Evaluation, must_evaluate
from trainer.agent.join import Api, PassportHolder, Stopped, persist
from trainer.agent.link import Link
from trainer.agent.loading import load_engine
from trainer.agent.outbox import Outbox
from trainer.agent.own_texts import check_named
from trainer.agent.placement import Mover
from trainer.agent.preparation import Preparation
from trainer.agent.reach import seated
from trainer.agent.seat import Seat, lock
from trainer.agent.shards import ShardHolder
from trainer.agent.spool import Spool, earlier_sessions
from trainer.agent.stopping import heed_signals
from trainer.agent.view import View
from trainer.agent.watchdog import Watchdog
from trainer.agent.wishes import Wishes
from trainer.device import clock, doctor
from trainer.engine.discretion import told
from trainer.engine.job import Job
from trainer.grant import JoinGrant
from trainer.launcher import web
from trainer.launcher.machine import facts
from trainer.launcher.place import make_folder
from trainer.recipe import Recipe
from trainer.swarm import identity
from trainer.swarm.orphans import ProcessEnded
from trainer.wire import (
    WIRE_VERSION,
    Activity,
    Bye,
    Control,
    Hello,
    LeaveCause,
    Machine,
    Progress,
    Role,
)

log = logging.getLogger(__name__)
Result = TypeVar("Result")
GOOD_ENDS = (LeaveCause.STOPPED, LeaveCause.FINISHED, LeaveCause.REPLACED, LeaveCause.RESTARTING)
START_AGAIN = -1  # in place of an exit code


class Session:
    """From join to leave. `run` returns the exit code of the process, or START_AGAIN."""

    def __init__(self, seat: Seat, view: View) -> None:
        self._seat, self._view = seat, view
        self._api = Api(seat.site, seat.token)
        self._wishes = Wishes(seat.folder / "wish.json", self._wish_changed)
        self._begin_at = 0.0

    def run(self) -> int:
        """Raises Unusable when another agent is here already."""
        held = lock(self._seat.folder)
        heed_signals(self._wishes, self._view)
        self._view.heed(self._wishes)
        try:
            self._take_part()
        except Stopped:
            pass
        except web.Refusal as refusal:
            if self._seat.is_placed and refusal.status == HTTPStatus.CONFLICT:
                self._begin_anew(str(refusal))  # it ended before the device was there
            else:
                self._wishes.stop(str(refusal), LeaveCause.FAILED)
        except Exception as error:
            log.exception("the agent failed")
            self._wishes.stop(f"The agent failed: {error}", LeaveCause.FAILED)
        begins_anew = self._is_to_begin_anew()
        held.close()
        if self._seat.is_placed and self._wishes.is_over:
            self._view.say("The site is asked for another collaboration.")
            return START_AGAIN
        if begins_anew:
            return START_AGAIN
        return 0 if self._wishes.current().cause in (None, *GOOD_ENDS) else 1

    def _wish_changed(self, control: Control) -> None:
        words = control.reason or {"run": "Running."}.get(control.wish, control.wish.value)
        log.info("wish: %s (%s)", control.wish, words)
        self._view.say(words)

    def _waiting(self, words: str) -> None:
        self._view.doing(f"waiting: {words}")

    def _persist(self, act: Callable[[], Result]) -> Result:
        return persist(act, self._wishes, waiting=self._waiting)

    # ------------------------------------------------------------ the parts in order
    def _take_part(self) -> None:
        load_engine()
        offset_s = self._persist(lambda: clock.offset_s(self._seat.site))
        key = identity.load_or_make(self._seat.folder / identity.FILENAME).public_text
        grant = self._persist(lambda: self._api.join(self._seat.slug, key))
        check_named(self._seat, grant.recipe, self._wishes)
        self._wishes.site(grant.control)
        self._seat = self._persist(lambda: self._seated(grant.recipe))
        passport = PassportHolder(
            self._api, self._seat.slug, key, first=grant.passport, offset_s=offset_s
        )
        passport.start(self._wishes)
        spool, link = self._open_link(grant)
        outbox = Outbox(spool, link, self._view)
        shards = ShardHolder(self._api, self._seat.slug, grant, self._seat.folder / ledger.FILENAME)
        self._view.reading = shards.words
        watchdog = Watchdog(
            self._wishes, rounds=lambda: outbox.num_rounds, is_linked=lambda: not self._view.link
        )
        mover = Mover(self._api, self._seat.slug, self._wishes)
        cause, reason = LeaveCause.FAILED, "the agent failed before it trained"
        try:
            if self._seat.is_placed:
                mover.start()
            if self._seat.role is Role.EVALUATOR:
                ports = (self._api, outbox, self._wishes, self._persist)
                cause = Evaluation(self._seat, grant, *ports).run()
            else:
                job = self._job(grant, passport, offset_s, outbox)
                from trainer.engine.peer import take_part  # waits for load_engine

                watchdog.start()
                job = replace(job, shards=shards, tell_own=self._view.show_own)
                cause = take_part(job, outbox, self._wishes)
            reason = self._wishes.current().reason
            if cause is LeaveCause.FAILED:
                reason = outbox.last_words
        except Stopped:
            cause, reason = self._why()
            raise
        except ProcessEnded as ended:
            self._begin_anew(str(ended))
            cause, reason = self._why()
        except Exception as error:
            cause, reason = LeaveCause.FAILED, told(error, grant.recipe)[:300]
            raise
        finally:
            passport.stop()
            watchdog.stop()
            mover.stop()
            shards.leave()
            self._leave(spool, link, cause, reason)
        if cause not in GOOD_ENDS:
            self._wishes.stop(reason or "The engine failed; the log file says more.", cause)

    def _seated(self, recipe: Recipe) -> Seat:
        """The seat with the role that this device can play. Raises as `seated`."""
        if self._seat.role is Role.PEER and must_evaluate(recipe):
            self._view.say(IN_WORDS)
            return replace(self._seat, role=Role.EVALUATOR)
        return seated(self._seat, recipe.round, self._api, self._view.say)

    def _job(
        self, grant: JoinGrant, passport: PassportHolder, offset_s: float, outbox: Outbox
    ) -> Job:
        """Of a member of the swarm, with all that it needs on this machine. Raises Stopped."""
        preparation = Preparation(self._seat, self._wishes, outbox, self._persist)
        preparation.check_shared_memory(grant.recipe)
        job = preparation.make_job(grant, passport, offset_s, self._api)
        if self._seat.role is not Role.COORDINATOR:
            finding = self._persist(lambda: doctor.check_swarm(grant.bootstrap))
            if finding.state is not doctor.State.GOOD:
                self._view.say(str(finding))
        outbox.progress(Progress(round=0, activity=Activity.STARTING, reason="loading the engine"))
        return job

    def _begin_anew(self, why: str) -> None:
        """After this session; unless that happens again and again."""
        pause_s = restarts.next_pause_s(os.environ, time.time())
        if pause_s is None:
            self._wishes.stop(restarts.last_words(why), LeaveCause.FAILED)
            return
        self._begin_at = time.monotonic() + pause_s
        when = f" in {pause_s:.0f} s" if pause_s > 1 else ""
        self._wishes.stop(f"{why}; it starts again{when}", LeaveCause.RESTARTING)

    def _is_to_begin_anew(self) -> bool:
        """Waits until it is time for that; False when it is stopped meanwhile."""
        while self._wishes.current().cause is LeaveCause.RESTARTING:
            if time.monotonic() >= self._begin_at:
                return True
            time.sleep(0.1)
        return False

    def _why(self) -> tuple[LeaveCause, str]:
        end = self._wishes.current()
        return end.cause or LeaveCause.STOPPED, end.reason

    def _open_link(self, grant: JoinGrant) -> tuple[Spool, Link]:
        session = uuid.uuid4().hex
        folder = make_folder(self._seat.folder / "spool")
        earlier = earlier_sessions(folder, session)
        spool = Spool(folder, session)
        hello = Hello(
            version=WIRE_VERSION,
            agent_version=__version__,
            session=session,
            collaboration=self._seat.slug,
            role=self._seat.role,
            machine=Machine(**facts()),
        )
        link = Link(
            self._seat.site.replace("http", "ws", 1) + grant.websocket,
            self._seat.token,
            hello=hello,
            spool=spool,
            earlier=earlier,
            wishes=self._wishes,
            changed=self._view.linked,
        )
        link.start()
        return spool, link

    def _leave(self, spool: Spool, link: Link, cause: LeaveCause, reason: str) -> None:
        if not spool.said_bye():
            spool.add(Bye(cause=cause, reason=reason[:300]))
        if link.close():
            spool.delete()
            self._view.say("Everything is reported; the session is closed on the site.")
            return
        then = (
            "the site takes none from a device that is shut out"
            if self._wishes.shut_out
            else "they are delivered at the next start"
        )
        count = spool.num_waiting
        kept = "1 report is" if count == 1 else f"{count} reports are"
        self._view.say(f"{kept} kept on disk: {then}.")
