"""Which offers of a group enter its average: decided from the notes, so by all members alike.

Every member has the same notes before the first part is sent, and nothing here looks elsewhere.
A refused offer weighs nothing; whoever made it still gets the average.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from statistics import median_high, median_low

from pydantic import ValidationError

from trainer import catalogue
from trainer.recipe import Recipe
from trainer.strategies.base import Strategy
from trainer.swarm.selection import in_force
from trainer.swarm.verdict import Note, deviates, short
from trainer.swarm.weights import ROUNDING, capped, discount

LONGEST = 1e30
DENSEST = 3.0  # target tokens of a sample, against the middle of the group


@dataclass(frozen=True)
class Limits:
    """What the recipe lets one offer hold; `longest` is its strategy's. `least_members` have to
    offer something, and none weighs more than `most_share` of all.
    """

    most_samples: int
    sequence_length: int
    longest: float = Strategy.longest
    least_members: int = 1
    most_share: float = 1.0
    late_rounds: int = 0


def limits_of(recipe: Recipe) -> Limits:
    rules = recipe.participation
    return Limits(
        recipe.round.most_samples(),
        recipe.sequence_length,
        catalogue.create("strategies", recipe.strategy).longest,
        rules.least_members,
        rules.most_share,
        rules.late_rounds,
    )


@dataclass(frozen=True)
class Judgement:
    """`notes` are those that could be read; `refused` by peer id, each a predicate of its offer."""

    notes: dict[str, Note]
    refused: dict[str, str]
    most_share: float = 1.0

    def weights(self) -> dict[str, float]:
        """Of the offers that count, as the average takes them."""
        said = {n: note.weight for n, note in self.notes.items() if n not in self.refused}
        return capped(said, self.most_share)


def judge(
    gathered: Mapping[str, object], round_number: int, limits: Limits, known: Collection[str]
) -> Judgement:
    """`known` are the coordinators."""
    notes: dict[str, Note] = {}
    refused: dict[str, str] = {}
    for name, content in gathered.items():
        try:
            note = Note.model_validate(content)
        except ValidationError as error:
            refused[name] = f"came with a malformed note ({error.errors()[0]['msg']})"
            continue
        if note.round != round_number:
            refused[name] = f"was of round {note.round} instead of {round_number}: too late"
        else:
            notes[name] = note
    for rule in _RULES:
        standing = {name: note for name, note in notes.items() if name not in refused}
        for name, note in standing.items():
            if reason := rule(name, note, standing, limits, known):
                refused[name] = reason
    return Judgement(notes, refused, limits.most_share)


def agreed(
    notes: Mapping[str, Note], known: Collection[str], read: Callable[[Note], float | None]
) -> float | None:
    """A figure that all take from the notes: the coordinator's, else the middle of the members'.

    Of two it is the higher: a guard that is in doubt refuses nobody.
    """
    said = {name: value for name, note in notes.items() if (value := read(note)) is not None}
    first = [value for name, value in sorted(said.items()) if name in known]
    if first:
        return first[0]
    return median_high(said.values()) if said else None


def middle_norm(notes: Mapping[str, Note]) -> float | None:
    norms = [note.norm for note in notes.values() if note.tokens]
    return median_low(norms) if norms else None


Rule = Callable[[str, Note, Mapping[str, Note], Limits, Collection[str]], str]


def _drifted(
    name: str, note: Note, notes: Mapping[str, Note], limits: Limits, known: Collection[str]
) -> str:
    if deviates(note, dict(notes), frozenset(known)):
        return "began from parameters that are not the swarm's"
    return ""


def _not_chosen(
    name: str, note: Note, notes: Mapping[str, Note], limits: Limits, known: Collection[str]
) -> str:
    chosen = in_force(notes, known)
    if note.tokens and chosen and short(name) not in chosen:
        return "came in a round for which other devices were chosen"
    return ""


def _barred(
    name: str, note: Note, notes: Mapping[str, Note], limits: Limits, known: Collection[str]
) -> str:
    """What a reducer saw in an earlier attempt; the coordinator's word, else most of ours."""
    others = {other: n for other, n in notes.items() if other != name}
    heard = {other: n.barred[short(name)] for other, n in others.items() if short(name) in n.barred}
    witnesses = [other for other in others if other in known] or list(others)
    agreeing = [heard[other] for other in sorted(witnesses) if other in heard]
    return agreeing[0] if 2 * len(agreeing) > len(witnesses) else ""


def _overweight(
    name: str, note: Note, notes: Mapping[str, Note], limits: Limits, known: Collection[str]
) -> str:
    if note.late > limits.late_rounds:
        return f"was made {note.late:,} rounds ago: too late"
    most = max(note.tokens, note.samples) * discount(note.late) * (1 + ROUNDING)
    if (note.weight > 0) != (note.tokens > 0) or note.weight > most:
        return f"claimed a weight of {note.weight:,.0f} for {note.tokens:,} tokens"
    if note.tokens > note.samples * limits.sequence_length:
        return f"claimed {note.tokens:,} tokens in {note.samples:,} samples"
    if note.steps > note.samples:
        return f"claimed {note.steps:,} steps with {note.samples:,} samples"
    if note.samples > limits.most_samples:
        return (
            f"claimed {note.samples:,} samples, and nobody can have more than "
            f"{limits.most_samples:,} in a round"
        )
    seen = _seen(name, notes, known)
    if seen is not None and note.samples > seen:
        return f"claimed {note.samples:,} samples, and at most {seen:,.0f} were seen of it"
    return ""


def _seen(name: str, notes: Mapping[str, Note], known: Collection[str]) -> float | None:
    """By the coordinator, else by most of the others; None when too few have seen its records."""
    others = {other: n for other, n in notes.items() if other != name}
    witnesses = {other: n for other, n in others.items() if short(name) in n.seen}
    if witnesses.keys() & set(known) or 2 * len(witnesses) > len(others):
        return agreed(witnesses, known, lambda n: n.seen[short(name)])
    return None


def _too_dense(
    name: str, note: Note, notes: Mapping[str, Note], limits: Limits, known: Collection[str]
) -> str:
    densities = [n.tokens / n.samples for n in notes.values() if n.tokens and n.samples]
    if note.tokens and len(densities) >= 3:
        usual = median_low(densities)
        if note.tokens > DENSEST * usual * note.samples:
            return (
                f"claimed {note.tokens / note.samples:,.0f} tokens in a sample, and {usual:,.0f} "
                "are usual"
            )
    return ""


def _too_long(
    name: str, note: Note, notes: Mapping[str, Note], limits: Limits, known: Collection[str]
) -> str:
    """The middle of this round's norms and of what was usual, once there are enough of them.

    Noise shrinks with the root of the tokens, and local steps add up, so smaller and larger
    offers than the middle one have more room.
    """
    if note.norm > LONGEST:
        return f"had a norm of {note.norm:.3g}"
    offers = {other: n for other, n in notes.items() if n.tokens}
    if name not in offers:
        return ""
    usual = agreed(notes, known, lambda n: n.usual_norm)
    norms = [n.norm for n in offers.values()] + ([usual] if usual else [])
    if len(offers) == 1:
        norms = [usual] if usual else []
    elif len(norms) < 3:
        return ""  # of two newcomers nobody can say which is wrong
    middle = median_low(norms) if norms else 0.0
    ratio = note.tokens / median_low([n.tokens for n in offers.values()])
    if middle > 0 and note.norm > limits.longest * middle * max(ratio, 1 / ratio) ** 0.5:
        return f"had a norm of {note.norm:.3g}, and {middle:.3g} is usual"
    return ""


_RULES: tuple[Rule, ...] = (_drifted, _not_chosen, _barred, _overweight, _too_dense, _too_long)
