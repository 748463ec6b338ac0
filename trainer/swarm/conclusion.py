"""From a judgement and the course of the all-reduce to the verdict of one member. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.swarm.bandwidth import believed
from trainer.swarm.codec import Fault
from trainer.swarm.judgement import Judgement, Limits
from trainer.swarm.reducer import Entry
from trainer.swarm.report import ReducerReport, sum_up
from trainer.wire import Outcome

# Of the notes, once all have judged by them.
FORGOTTEN: dict[str, Any] = {"seen": {}, "received": {}}
NOBODY_AVERAGES = "the coordinator, which alone averages here, was not in the group"


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
    judgement: Judgement,
    senders: Sequence[bool],
    names: Sequence[str],
    alone: Collection[str] | None,
) -> list[float | None]:
    """For `share_out`: senders and refused members average nothing for others.

    `alone`: of these one does it all, whatever its link; None where all share the work. All are 0
    where nobody can average.
    """
    if alone is not None:
        first = min((name for name in names if name in alone), default=None)
        return [1.0 if name == first else 0.0 for name in names]
    speeds = believed(judgement.notes)
    full = [0.0 if sends else speeds.get(n) for n, sends in zip(names, senders, strict=True)]
    trusted = [0.0 if n in judgement.refused else s for n, s in zip(names, full, strict=True)]
    if any(speed != 0 for speed in trusted):
        return trusted
    return [0.0 if sends else None for sends in senders]


def void(
    judgement: Judgement, speeds: Sequence[float | None], limits: Limits
) -> dict[str, Any] | None:
    """Fields of the `Verdict` of a round in which nothing is averaged; None when it can be."""
    if not any(speed != 0 for speed in speeds):
        return {"outcome": Outcome.FAILED, "notes": {}, "reason": NOBODY_AVERAGES}
    if not (reason := _too_few(judgement, (), limits)):
        return None
    return {
        "outcome": Outcome.FAILED,
        "notes": judgement.notes,
        "refused": judgement.refused,
        "reason": reason,
    }


def _too_few(judgement: Judgement, left_out: Collection[str], limits: Limits) -> str:
    """Why the offers that are in the average are fewer than the recipe asks for; "": they are not,
    or nobody offered anything.
    """
    offered = {name for name, weight in judgement.weights().items() if weight > 0}
    taken, least = len(offered.difference(left_out)), limits.least_members
    if not offered or taken >= least or least == 1:
        return ""
    return f"a round needs the results of {least} devices and had {taken}"


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
    own: str,
    names: Sequence[str],
    judgement: Judgement,
    shares: Sequence[float],
    course: Course,
    limits: Limits,
) -> dict[str, Any]:
    """Fields of its `Verdict`. A refusal too late for some part makes the average unusable, and so
    does the loss of a member without whom there are too few: all who finish hear of both alike.
    """
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
    elif few := _too_few(judgement, silent | refused.keys(), limits):
        outcome, reason = Outcome.FAILED, few
    return {
        "outcome": outcome,
        "reason": reason,
        "notes": {n: note.model_copy(update=FORGOTTEN) for n, note in judgement.notes.items()},
        "lost": tuple(sorted({*silent, *course.failed_reducers})),
        "refused": {**refused, **judgement.refused},
        "struck": tuple(sorted(refused)),
        "shares": dict(zip(names, shares, strict=True)),
        "weights": judgement.weights(),
        "failed_parts": course.failed_parts,
        "bytes_in": course.bytes_in,
        "bytes_out": course.bytes_out,
    }
