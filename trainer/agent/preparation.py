"""What has to be on this machine before it trains: room, files, and the newest checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer import catalogue
from trainer.agent.files import Files
from trainer.agent.join import Api, PassportHolder, Stopped
from trainer.agent.news import follow
from trainer.agent.outbox import Outbox
from trainer.agent.seat import Seat
from trainer.agent.wishes import Wishes
from trainer.device import doctor
from trainer.engine.job import Job
from trainer.grant import Checkpoint, JoinGrant
from trainer.launcher import web
from trainer.launcher.place import make_folder
from trainer.recipe import Recipe
from trainer.wire import Activity, LeaveCause, Progress, Role, Wish

Persist = Callable[[Callable[[], Any]], Any]  # the act's result, however long the site is away
log = logging.getLogger(__name__)


class Preparation:
    def __init__(self, seat: Seat, wishes: Wishes, outbox: Outbox, persist: Persist) -> None:
        self._seat, self._wishes, self._outbox, self._persist = seat, wishes, outbox, persist

    def check_shared_memory(self, recipe: Recipe) -> None:
        """Raises Stopped where averaging this recipe's offers would fail, before any download."""
        finding = doctor.check_shared_memory(catalogue.offered_values(recipe))
        if finding.state is doctor.State.BAD:
            self._wishes.stop(str(finding), LeaveCause.FAILED)
            raise Stopped

    def make_job(
        self, grant: JoinGrant, passport: PassportHolder, offset_s: float, api: Api
    ) -> Job:
        """With everything fetched. Raises Stopped when it is no longer wanted meanwhile."""
        seat = self._seat
        files = Files(seat.site, seat.cache, self._downloading, seat.own_texts)
        heard = follow("when the site was last asked", lambda: api.heard(seat.slug), seat.role)
        tokenizer, texts, held_out = self._persist(lambda: files.fetch_recipe(grant.recipe))
        return Job(
            recipe=grant.recipe,
            role=seat.role,
            folder=seat.folder,
            tokenizer=tokenizer,
            texts=texts,
            held_out=held_out,
            checkpoint=self._fetch_checkpoint(grant.checkpoint),
            passport=passport,
            authority=grant.authority,
            bootstrap=grant.bootstrap,
            clock_offset_s=offset_s,
            num_threads=seat.num_threads,
            num_processes=seat.num_processes,
            split=seat.split,
            listen_address=seat.listen_address,
            announce_host=seat.announce_host,
            checkpoint_folder=seat.checkpoint_folder,
            revocations=follow("the revocation list", api.revocations, seat.role),
            heard_at=lambda: news.heard_at if (news := heard()) else None,
            shares_own=seat.shares_own,
            base=self._persist(lambda: files.fetch_base(grant.recipe.base)),
        )

    def _fetch_checkpoint(self, newest: Checkpoint | None) -> Path | None:
        """None where there is none, the site gave it up meanwhile, or its file is damaged there:
        then peers have the state.

        The coordinator goes on from its own folder.
        """
        if newest is None or self._seat.role is Role.COORDINATOR:
            return None
        folder = make_folder(self._seat.folder / "checkpoints")
        files = Files(self._seat.site, folder, self._downloading, token=self._seat.token)

        def fetch() -> Path | None:
            try:
                return files.fetch(newest)
            except (web.Refusal, web.Damaged) as error:
                log.warning("going without the checkpoint of round %d: %s", newest.round, error)
                return None

        path: Path | None = self._persist(fetch)
        if path is not None:
            files.keep_only(newest.sha256)
        return path

    def _downloading(self, name: str, done: int, total: int) -> None:
        """Raises Stopped when it is no longer wanted; what came is kept."""
        if self._wishes.current().wish is Wish.STOP:
            raise Stopped
        reason = f"downloading {name}: {done / max(total, 1):.0%} of {total:,} bytes"
        self._outbox.progress(Progress(round=0, activity=Activity.CATCHING_UP, reason=reason))
