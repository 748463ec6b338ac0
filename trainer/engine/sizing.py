"""How many sequences a device handles at once: as many as take about a second and fit in memory.

Where not even one fits, what a pass would keep is computed again (`engine.recompute`).

Found while training: a size that takes at most half a second is doubled, one that takes more than
two seconds three times in a row is halved, so a size that was right stays. No sample is wasted,
and where samples only add up (DeDLOC) the size changes nothing that is learned.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

from trainer.device import memory
from trainer.engine.learner import Learner
from trainer.planner.need import activation_bytes, need_of
from trainer.planner.ways import Way, ways_of
from trainer.recipe import Recipe

FILENAME = "micro_batch.json"
WANTED_S = 1.0
LONGEST_S = 2.0
SLOW_IN_A_ROW = 3
STEADY = 2  # passes of one size: the first one of a process is slow, whatever the device can do
MOST = 4096
AMPLE = 1.5  # times what the planner counts
PER_TARGET = 8  # so many of the largest micro-batches make a target batch
log = logging.getLogger(__name__)


class DoesNotFit(MemoryError):
    """Not even one sequence fits in this device's memory."""


class Sizer:
    """`batch` sequences are a micro-batch; `rows` of them at a time go through the model.

    Both are one number, except where the recipe fixes the micro-batch: then only memory that ran
    out makes `rows` smaller. What was found is kept at `path` for the next start.
    """

    def __init__(
        self,
        recipe: Recipe,
        device: str,
        path: Path | None = None,
        room: Callable[[], int] = memory.available_bytes,
        *,
        pass_bytes: int = 0,
        may_recompute: bool = True,
    ) -> None:
        """`pass_bytes`: what a pass should keep; more than there is room for is not tried."""
        self._recipe, self._path, self._room = recipe, path, room
        self._may_recompute = may_recompute
        self.recomputes = may_recompute and pass_bytes > room()
        self._key = {"recipe": recipe.sha256(), "device": device}
        allowed = max(1, min(MOST, recipe.round.target_samples // PER_TARGET))
        self._most = recipe.micro_batch or allowed
        self.rows = recipe.micro_batch or 1
        self._base_bytes = memory.used_bytes()
        self._slow, self._seconds, self._steady = 0, 0.0, 0
        self._load()

    @property
    def batch(self) -> int:
        return self._recipe.micro_batch or self.rows

    @property
    def is_settled(self) -> bool:
        """Whether this size is fixed, or was taken a few times: else it will soon be faster."""
        return bool(self._recipe.micro_batch) or self._steady >= STEADY

    def begin_with(self, fits: Callable[[int], bool]) -> None:
        """Fewer sequences, as long as so many are known not to fit."""
        while self.rows > 1 and not fits(self.rows):
            self._set(self.rows // 2)

    def took(self, samples: int, seconds: float, held_bytes: int) -> None:
        """A micro-batch is done; `held_bytes` is the process's memory at its height."""
        if samples != self.batch:
            return  # the end of a text, or asked for before the size changed: it tells nothing
        self._seconds = seconds
        self._steady += 1
        self._slow = self._slow + 1 if seconds > LONGEST_S else 0
        if self._recipe.micro_batch:
            return
        if seconds <= WANTED_S / 2 and self._may_double(held_bytes):
            self._set(min(2 * self.rows, self._most))
        elif self._slow >= SLOW_IN_A_ROW and self.rows > 1:
            self._set(self.rows // 2)

    def _may_double(self, held_bytes: int) -> bool:
        """Twice as many need about as much memory again; as much is left to spare."""
        return 2 * (held_bytes - self._base_bytes) <= self._room()

    def ran_out(self) -> str:
        """Memory ran out: says what it does about it. Raises DoesNotFit when it can do nothing."""
        failed = self.rows
        if failed == 1 and self._may_recompute and not self.recomputes:
            self.recomputes = True
            self._keep()
            return (
                "not even one sequence at once fitted in memory; now it keeps less of each pass "
                "and computes it again, which takes longer"
            )
        if failed == 1:
            raise DoesNotFit(
                f"not even one sequence of {self._recipe.sequence_length} tokens fits in this "
                "device's memory: close other programs, or take part with a larger machine"
            )
        self._most = failed // 2
        self._set(self._most)
        return f"{failed} sequences at once did not fit in memory; now it takes {self.rows}"

    def trouble(self) -> str:
        """Why this device may miss rounds, in words; "" when it is fast enough."""
        longest_s = self._recipe.round.matchmaking_s
        if self._slow < SLOW_IN_A_ROW or self._seconds <= longest_s:
            return ""
        what = "one sequence takes" if self.batch == 1 else f"{self.batch} sequences take"
        return (
            f"{what} {self._seconds:.0f} s here and the others wait {longest_s:g} s: "
            "this device may miss rounds"
        )

    def _set(self, rows: int) -> None:
        if rows == self.rows:
            return
        log.info("%d sequences at once instead of %d", rows, self.rows)
        self.rows, self._slow, self._steady = rows, 0, 0
        self._keep()

    def _keep(self) -> None:
        if self._path is not None:
            with suppress(OSError):  # it is found again at the next start
                found = {**self._key, "rows": self.rows, "most": self._most}
                found["recomputes"] = self.recomputes
                self._path.write_text(json.dumps(found), encoding="utf-8")

    def _load(self) -> None:
        if self._path is None:
            return
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            rows, most = int(kept["rows"]), int(kept["most"])
        except (OSError, ValueError, KeyError, TypeError):
            return
        if self._key.items() <= kept.items() and 1 <= rows <= most <= self._most:
            self.rows, self._most = rows, most
            self.recomputes |= self._may_recompute and kept.get("recomputes") is True


def make_sizer(learner: Learner, folder: Path) -> Sizer:
    """Of a peer that trains; what it found is kept in `folder`."""
    recipe, on_cpu = learner.recipe, learner.device.type == "cpu"
    rows = recipe.micro_batch or 1
    sizer = Sizer(
        recipe,
        learner.device_name,
        folder / FILENAME,
        pass_bytes=activation_bytes(learner.family, recipe, rows) if on_cpu else 0,
        may_recompute=learner.may_recompute,
    )
    if sizer.recomputes:
        log.info("There is little memory: what a pass keeps is computed again")
        learner.recompute()
    sizer.recomputes |= learner.recomputes
    if on_cpu and learner.recomputes:
        room = memory.available_bytes()
        sizer.begin_with(
            lambda n: activation_bytes(learner.family, recipe, n, recomputes=True) <= room
        )
    return sizer


def has_room_beside(recipe: Recipe) -> bool:
    """Whether, by the planner's count, there is ample memory for a process that reads beside.

    It only saves time, so it is not to be what fills a small device up.
    """
    need = need_of(recipe, on_gpu=torch.cuda.is_available())
    return AMPLE * need.host_bytes <= memory.room_bytes()


def must_stream(recipe: Recipe) -> bool:
    """Whether, by the planner's count, this device's memory does not hold the recipe's frozen base
    in any other way.
    """
    if Way.STREAMED not in ways_of(recipe):
        return False
    on_gpu = torch.cuda.is_available()
    need = need_of(recipe, on_gpu=on_gpu, way=Way.RECOMPUTED)
    if on_gpu:
        return need.gpu_bytes > torch.cuda.mem_get_info()[0]
    return need.total > memory.room_bytes()
