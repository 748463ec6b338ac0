"""Round records: what is kept of each round, whoever reported it first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from trainer.wire import Outcome, VerdictSummary
from webapp.collaborations.models import Collaboration
from webapp.live.facts import APPLIED
from webapp.live.models import Event, RoundRecord

LEAST_MISSED = 0.001  # less is rounding on the wire
FIELDS = [
    *("outcome", "members", "samples", "tokens", "loss", "held_out_loss", "duration_s"),
    *("bytes_in", "bytes_out", "num_lost", "asked", "reason", "mean_norm", "told"),
    *("from_coordinator", "at"),
]


@dataclass(frozen=True)
class Witnessed:
    """A verdict as the coordinator (or only a member) saw it; `at` is site time."""

    verdict: VerdictSummary
    at: datetime
    by_coordinator: bool


def site_time(claimed_s: float, *, earliest: datetime, now: datetime) -> datetime:
    """When a report was made, in site time, although only the device's clock is known.

    Reports kept on the device while the site was down keep their times; a clock that names a time
    before the session or in the future is not believed, and the time of arrival counts.
    """
    if earliest.timestamp() <= claimed_s <= now.timestamp():
        return datetime.fromtimestamp(claimed_s, tz=now.tzinfo)
    return now


def forget_abandoned(
    collaboration: Collaboration, witnessed: Iterable[Witnessed]
) -> tuple[int, int] | None:
    """Deletes rounds that are no part of the model any more; returns the first and the last.

    A coordinator passes rounds in order. When it sees one done after it had seen later ones, the
    swarm has gone back to an older checkpoint, and those are done anew. Credit for them stays.
    """
    applied = [one for one in witnessed if one.by_coordinator and one.verdict.outcome in APPLIED]
    if not applied:
        return None
    first = min(applied, key=lambda one: one.verdict.round)
    abandoned = collaboration.rounds.filter(
        round__gte=first.verdict.round, from_coordinator=True, at__lt=first.at
    )
    rounds = sorted(abandoned.filter(outcome__in=APPLIED).values_list("round", flat=True))
    if not rounds:
        return None
    abandoned.delete()
    return rounds[0], rounds[-1]


def record_rounds(
    collaboration: Collaboration, witnessed: Iterable[Witnessed]
) -> list[tuple[RoundRecord, bool]]:
    """Writes what is new or better than what is held; returns it, True where the outcome is news.

    Runs in the caller's transaction. No record is older than that of an earlier round.
    """
    ordered = sorted(witnessed, key=lambda one: one.verdict.round)
    if not ordered:
        return []
    rounds = {one.verdict.round for one in ordered}
    held = {record.round: record for record in collaboration.rounds.filter(round__in=rounds)}
    before = collaboration.rounds.filter(round__lt=min(rounds)).order_by("-round").first()
    floor = before.at if before else ordered[0].at
    changed: dict[int, tuple[RoundRecord, bool]] = {}
    for one in ordered:
        record = held.get(one.verdict.round)
        if record is None or wins(one, record):
            is_news = record is None or record.outcome != one.verdict.outcome
            is_news = is_news or changed.get(one.verdict.round, (None, False))[1]
            record = record or RoundRecord(collaboration=collaboration, round=one.verdict.round)
            _fill(record, one, max(floor, one.at) if is_news else record.at)
            held[record.round] = record
            changed[record.round] = (record, is_news)
        floor = max(floor, record.at)
    write(record for record, _ in changed.values())
    return list(changed.values())


def write(records: Iterable[RoundRecord]) -> None:
    RoundRecord.objects.bulk_create(
        list(records),
        update_conflicts=True,
        unique_fields=["collaboration", "round"],
        update_fields=FIELDS,
    )


def wins(new: Witnessed, held: RoundRecord) -> bool:
    """The coordinator's word beats the members', and its later word its earlier one.

    Among members an applied round beats a failed try, then the larger group counts: a split swarm
    has several groups in one round.
    """
    if new.by_coordinator or held.from_coordinator:
        return new.by_coordinator
    return _weight(new.verdict.outcome, new.verdict.samples) > _weight(held.outcome, held.samples)


def _weight(outcome: str, samples: int) -> tuple[bool, int]:
    return outcome in APPLIED, samples


def _fill(record: RoundRecord, witnessed: Witnessed, at: datetime) -> None:
    verdict = witnessed.verdict
    record.outcome = str(verdict.outcome)
    record.members = verdict.members
    record.samples = verdict.samples
    record.tokens = verdict.tokens
    record.loss = verdict.loss
    record.duration_s = verdict.duration_s
    record.bytes_in = verdict.bytes_in
    record.bytes_out = verdict.bytes_out
    record.num_lost = len(verdict.lost)
    record.asked = verdict.asked
    record.reason = _reason(verdict)
    record.mean_norm = verdict.mean_norm
    record.told = verdict.told
    record.from_coordinator = witnessed.by_coordinator
    record.at = at


def _reason(verdict: VerdictSummary) -> str:
    """With what was wrong with offers that were left out, whose they were stays private; and how
    far an averaged adapter is off.
    """
    said = [verdict.reason] if verdict.reason else []
    if verdict.refused:
        offers = (
            "1 offer was" if len(verdict.refused) == 1 else f"{len(verdict.refused)} offers were"
        )
        why = "; ".join(dict.fromkeys(f"it {one.reason}" for one in verdict.refused))
        said.append(f"{offers} left out: {why}")
    if (verdict.missed or 0) >= LEAST_MISSED:
        said.append(
            f"what was averaged is {verdict.missed:.1%} of the round's change away from the "
            "average of the devices' adapters"
        )
    return "; ".join(said)[:300]


def kind_of(record: RoundRecord) -> Event.What:
    undone = record.outcome == Outcome.UNDONE
    return Event.What.WARNING if undone else Event.What.ROUND


def story(record: RoundRecord) -> str:
    """One line for the event list."""
    lost = f", {record.num_lost} lost" if record.num_lost else ""
    loss = f", loss {record.loss:.4g}" if record.loss is not None else ""
    what = {
        Outcome.CLEAN: f"Round {record.round} is done",
        Outcome.ALONE: f"Round {record.round} is done",
        Outcome.PARTIAL: f"Round {record.round} lost a part and was not applied",
        Outcome.FAILED: f"Round {record.round} failed and was not applied",
        Outcome.UNDONE: f"Round {record.round} was undone",
    }[Outcome(record.outcome)]
    peers = "1 peer" if record.members == 1 else f"{record.members} peers"
    if record.asked is not None:
        peers = f"{record.members} of {record.asked} chosen peers"
    figures = f"{what}: {peers}{lost}, {record.samples:,} samples{loss}."
    told = record.outcome == Outcome.UNDONE or (record.from_coordinator and record.reason)
    if not told or record.outcome == Outcome.ALONE:
        return figures
    return f"{figures} {record.reason[:1].upper()}{record.reason[1:]}."[:300]
