"""A device that can train nothing of a collaboration measures its checkpoints instead."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.agent.files import Files
from trainer.agent.join import Api
from trainer.agent.outbox import Outbox
from trainer.agent.seat import Seat
from trainer.agent.wishes import Wishes
from trainer.device import memory
from trainer.grant import (
    Evaluated,
    EvaluationAnswer,
    EvaluationRequest,
    EvaluationTask,
    JoinGrant,
)
from trainer.launcher import web
from trainer.launcher.machine import facts
from trainer.launcher.place import make_folder
from trainer.planner.fit import NO_GPU
from trainer.planner.need import need_of
from trainer.planner.ways import Way, ways_of
from trainer.recipe import Recipe
from trainer.sources.base import SourceUnavailable
from trainer.text.tokenizer import Tokenizer
from trainer.wire import Activity, LeaveCause, Progress, Wish

if TYPE_CHECKING:
    from trainer.engine.evaluating import Evaluator

LOOK_S = 0.25
ASK_AGAIN_S = 20.0
IN_WORDS = (
    "This device's memory is too small to train here, so it measures the model with parts of the "
    "held-out text instead; that is credited, too."
)
log = logging.getLogger(__name__)


def must_evaluate(recipe: Recipe) -> bool:
    """Whether, by the planner's count, memory is enough for that and for nothing else."""
    *training, last = ways_of(recipe)
    if last is not Way.EVALUATING or facts()["accelerator"] != NO_GPU:
        return False
    trains = need_of(recipe, way=training[-1]).total
    return need_of(recipe, way=last).total <= memory.room_bytes() < trains


@dataclass
class Evaluation:
    """`persist` does an act however long the site is away, and raises Stopped."""

    seat: Seat
    grant: JoinGrant
    api: Api
    outbox: Outbox
    wishes: Wishes
    persist: Callable[[Callable[[], Any]], Any]
    _round: int = field(default=0, init=False)

    def run(self) -> LeaveCause:
        """Until the site or the volunteer wishes otherwise. Raises Stopped."""
        evaluator = self._made()
        done: Evaluated | None = None
        while (control := self.wishes.current()).wish not in (Wish.STOP, Wish.FINISH):
            if control.wish is Wish.PAUSE:
                self._show(Activity.PAUSED, control.reason)
                time.sleep(LOOK_S)
                continue
            answer = self._answer(done)
            done = self._evaluated(evaluator, answer.task) if answer.task else None
            if answer.task is None:
                self._wait(answer.reason)
        return control.cause or LeaveCause.FINISHED

    def _answer(self, done: Evaluated | None) -> EvaluationAnswer:
        request = EvaluationRequest(recipe_sha256=self.grant.recipe_sha256, done=done)
        try:
            answer: EvaluationAnswer = self.persist(
                lambda: self.api.evaluation(self.seat.slug, request)
            )
        except web.Refusal as refusal:  # where it is over, the site says so by the websocket
            return EvaluationAnswer(task=None, reason=str(refusal)[:300])
        return answer

    def _made(self) -> Evaluator:
        from trainer.engine.evaluating import Evaluator  # loads torch

        recipe, files = self.grant.recipe, Files(self.seat.site, self.seat.cache)
        self._show(Activity.STARTING, "loading what is to be measured")
        words = self.persist(lambda: files.fetch(recipe.tokenizer.file))
        held_out = self.persist(lambda: files.fetch_text(recipe.held_out))
        base = self.persist(lambda: files.fetch_base(recipe.base))
        return Evaluator(recipe, Tokenizer.of(recipe, words), held_out, base)

    def _evaluated(self, evaluator: Evaluator, task: EvaluationTask) -> Evaluated | None:
        """None where the checkpoint or the text cannot be had now; it waits then."""
        self._round = task.checkpoint.round
        part = f"part {task.part + 1} of {task.num_parts} of the held-out text"
        self._show(Activity.EVALUATING, f"{part}, with the model of round {self._round}")
        try:
            path = self._fetched(task)
            began = time.monotonic()
            loss, tokens = evaluator.measure(path, task.part, task.num_parts)
        except (web.Refusal, ValueError, SourceUnavailable) as error:
            log.warning("not evaluated: %s", error)
            self._wait(str(error))
            return None
        return Evaluated(
            checkpoint=task.checkpoint.sha256,
            part=task.part,
            loss_sum=loss,
            tokens=tokens,
            compute_s=time.monotonic() - began,
        )

    def _fetched(self, task: EvaluationTask) -> Path:
        """The newest checkpoint is the only one that is kept."""
        folder = make_folder(self.seat.folder / "checkpoints")
        files = Files(self.seat.site, folder, token=self.seat.token)
        path: Path = self.persist(lambda: files.fetch(task.checkpoint))
        files.keep_only(task.checkpoint.sha256)
        return path

    def _wait(self, reason: str) -> None:
        self._show(Activity.WAITING, reason)
        until = time.monotonic() + ASK_AGAIN_S
        while time.monotonic() < until and self.wishes.current().wish is Wish.RUN:
            time.sleep(LOOK_S)

    def _show(self, activity: Activity, reason: str) -> None:
        progress = Progress(round=self._round, activity=activity, reason=reason[:300])
        self.outbox.progress(progress)
