"""Peers that run the real loop, and say something else than it told them. One class a lie.

`offer` sees what goes into an average, `record` what goes into the DHT.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from trainer.swarm.progress import Standing
from trainer.swarm.verdict import Note

if TYPE_CHECKING:
    from torch import Tensor

Said: TypeAlias = "tuple[list[Tensor], Note]"


class Liar:
    summary: ClassVar[str]

    def offer(self, tensors: Sequence[Tensor], note: Note) -> Said:
        return list(tensors), note

    def record(self, standing: Standing) -> Standing:
        return standing


class NotFinite(Liar):
    summary = "offers NaN"

    def offer(self, tensors: Sequence[Tensor], note: Note) -> Said:
        return [tensor * float("nan") for tensor in tensors], note


class SignFlip(Liar):
    summary = "offers the opposite of what it found"

    def offer(self, tensors: Sequence[Tensor], note: Note) -> Said:
        return [-tensor for tensor in tensors], note


class Scale(Liar):
    summary = "offers a thousand times what it found"

    def offer(self, tensors: Sequence[Tensor], note: Note) -> Said:
        longer = note.model_copy(update={"norm": note.norm * 1000})
        return [1000 * tensor for tensor in tensors], longer


class Delayed(Liar):
    summary = "offers what it found ten rounds ago"
    ROUNDS = 10

    def __init__(self) -> None:
        self._old: deque[tuple[int, float, list[Tensor]]] = deque()

    def offer(self, tensors: Sequence[Tensor], note: Note) -> Said:
        self._old.append((note.round, note.norm, [tensor.clone() for tensor in tensors]))
        while len(self._old) > 1 and self._old[1][0] <= note.round - self.ROUNDS:
            self._old.popleft()
        _, norm, old = self._old[0]
        return old, note.model_copy(update={"norm": norm})


class Weight(Liar):
    summary = "claims a million times its weight"

    def offer(self, tensors: Sequence[Tensor], note: Note) -> Said:
        return list(tensors), note.model_copy(update={"weight": note.weight * 1e6})


class Claims(Liar):
    summary = "claims a thousand times its samples, in records and in notes"

    def offer(self, tensors: Sequence[Tensor], note: Note) -> Said:
        more = {key: getattr(note, key) * 1000 for key in ("samples", "tokens", "weight")}
        return list(tensors), note.model_copy(update=more)

    def record(self, standing: Standing) -> Standing:
        return standing.model_copy(update={"samples": standing.samples * 1000})


class Steps(Liar):
    summary = "claims a thousand steps for each that it took"

    def offer(self, tensors: Sequence[Tensor], note: Note) -> Said:
        return list(tensors), note.model_copy(update={"steps": note.steps * 1000})


class Uninvited(Liar):
    summary = "offers something in rounds for which others were chosen, too"

    def offer(self, tensors: Sequence[Tensor], note: Note) -> Said:
        if note.tokens:
            return list(tensors), note
        made_up = {"samples": 4, "tokens": 40, "weight": 40.0, "loss_sum": 80.0, "chosen": None}
        return [tensor + 1e-3 for tensor in tensors], note.model_copy(update=made_up)


class Ahead(Liar):
    summary = "claims to be a million rounds ahead"

    def record(self, standing: Standing) -> Standing:
        return standing.model_copy(update={"round": standing.round + 10**6})


class Early(Liar):
    summary = "claims that its round began an hour ago"

    def record(self, standing: Standing) -> Standing:
        return standing.model_copy(update={"started": standing.started - 3600})


KINDS: dict[str, type[Liar]] = {
    "nan": NotFinite,
    "flip": SignFlip,
    "scale": Scale,
    "delayed": Delayed,
    "weight": Weight,
    "claims": Claims,
    "steps": Steps,
    "uninvited": Uninvited,
    "ahead": Ahead,
    "early": Early,
}
