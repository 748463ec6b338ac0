"""From a judgement and the course of the all-reduce to the verdict of one member. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.swarm.codec import Fault
from trainer.swarm.judgement import Judgement
from trainer.swarm.reducer import Entry
from trainer.swarm.report import ReducerReport, sum_up
from trainer.wire import Outcome


@dataclass(frozen=True)
class Course:
    """How the all-reduce went for one member: what it heard, and what it did not get.

    `refused` is what reducers had against its own offer, `problem` why `failed_reducers` failed.
    """

    reports: Sequence[ReducerReport]
    refused: Fault | None = None
    failed_reducers: Collection[str] = ()
    failed_parts: int = 0
    problem: str = ""
    bytes_in: int = 0
    bytes_out: int = 0


def reducing_speeds(
    contents: Sequence[Sequence[Any]], names: Sequence[str], judgement: Judgement
) -> list[float | None]:
    """Speeds for the load balancer; whoever is refused averages nothing for others."""
    speeds = [0.0 if mode == 1 else speed for speed, mode, _ in contents]
    trusted = [0.0 if n in judgement.refused else s for n, s in zip(names, speeds, strict=True)]
    return trusted if any(speed != 0 for speed in trusted) else speeds


def entries(judgement: Judgement, names: Sequence[str]) -> list[Entry | None]:
    """By the notes alone: what a sender says with its parts does not count.

    None for one whose note cannot be used: nobody waits for it.
    """
    weights = judgement.weights()
    total = sum(weights.values()) or 1.0
    return [
        Entry(weights.get(name, 0.0) / total, judgement.notes[name].norm)
        if name in judgement.notes
        else None
        for name in names
    ]


def conclude(
    own: str, names: Sequence[str], judgement: Judgement, course: Course
) -> dict[str, Any]:
    """Fields of its `Verdict`. A refusal too late for some part makes the average unusable."""
    silent, refused, moved = sum_up(course.reports, names, judgement.weights())
    outcome, reason = Outcome.CLEAN, ""
    if course.refused:
        refused[own] = course.refused.value
        outcome, reason = Outcome.FAILED, f"this device's offer {course.refused.value}"
    elif moved:
        outcome, reason = Outcome.FAILED, "an offer turned out to be unusable while averaging"
    elif course.failed_reducers:
        outcome = Outcome.PARTIAL
        reason = f"a member was lost while averaging ({course.problem})"
    return {
        "outcome": outcome,
        "reason": reason,
        "notes": {n: note.model_copy(update={"seen": {}}) for n, note in judgement.notes.items()},
        "lost": tuple(sorted({*silent, *course.failed_reducers})),
        "refused": {**refused, **judgement.refused},
        "struck": tuple(sorted(refused)),
        "failed_parts": course.failed_parts,
        "bytes_in": course.bytes_in,
        "bytes_out": course.bytes_out,
    }
