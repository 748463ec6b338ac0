"""What an experiment says: figures of each strategy over its seeds, and one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from trainer.experiment import Experiment

Curve = Sequence[tuple[int, float]]
CENTRALISED, LOCAL_ONLY = "centralised", "local-only"


@dataclass(frozen=True)
class Run:
    """One strategy or baseline with one seed.

    `curve` are (round, held-out loss), round 0 the first; `loss` is at the end, the mean over all
    topics; `worst` the highest, `spread` the standard deviation and `own` the mean of what
    volunteers see on their own mixtures of topics. `reached`: whether all rounds were done. None:
    not measured.
    """

    name: str
    seed: int
    curve: Curve
    loss: float | None
    worst: float | None
    spread: float | None
    own: float | None = None
    reached: bool = True
    simulated_s: float | None = None
    bytes_sent: int | None = None
    released_samples: int | None = None


def summary(runs: Sequence[Run], names: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each name that has runs: means over seeds, and `loss_spread` between several."""
    rows = []
    for name in names:
        own = [run for run in runs if run.name == name]
        losses = [run.loss for run in own if run.loss is not None]
        if not own:
            continue
        rows.append(
            {
                "name": name,
                "seeds": len(own),
                "done": sum(run.reached and run.loss is not None for run in own),
                "loss": fmean(losses) if losses else None,
                "loss_spread": pstdev(losses) if len(losses) > 1 else None,
                "worst": _mean([run.worst for run in own]),
                "spread": _mean([run.spread for run in own]),
                "simulated_s": _mean([run.simulated_s for run in own]),
                "bytes_sent": _mean([run.bytes_sent for run in own]),
                "released_samples": _mean([run.released_samples for run in own]),
            }
        )
    return rows


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def conclusion(experiment: Experiment, runs: Sequence[Run], names: Sequence[str]) -> str:
    """Which of the strategies `names` held up best on such data, and how far that is to be trusted.

    Seeds are compared one by one, since equal seeds have equal texts and people.
    """
    losses = {name: _by_seed(runs, name) for name in names}
    complete = {name: own for name, own in losses.items() if len(own) == experiment.seeds}
    failed = [name for name in names if name not in complete]
    if not complete:
        return "No strategy got through with every seed, so nothing can be said."
    ranked = sorted(complete, key=lambda name: fmean(complete[name].values()))
    best, others = ranked[0], ranked[1:]
    about = (
        f"With {experiment.split_in_words()}, {experiment.volunteers} volunteers, "
        f"{experiment.slow_percent} % of them slow, and {experiment.rounds} rounds"
    )
    equal = [name for name in others if not _always_below(complete[best], complete[name])]
    loss = _in_words(complete[best])
    if not others:
        said = f"{about}, {best} ended at a held-out loss of {loss}; nothing to compare it with."
    elif experiment.seeds == 1:
        said = f"{about}, {best} ended lowest in the one seed tried: {loss}. That may be luck."
    elif equal:
        told = ", ".join(f"{name} ({_in_words(complete[name])})" for name in equal)
        said = (
            f"{about}, {best} ended lowest on average ({loss}), but not with every seed: it cannot "
            f"be told apart from {told}."
        )
    else:
        second = others[0]
        said = (
            f"{about}, {best} held up best, with each of {experiment.seeds} seeds: held-out loss "
            f"{loss}, then {second} with {_in_words(complete[second])}."
        )
    if failed:
        said += f" Not with every seed got through: {', '.join(failed)}."
    return said + _beside(runs)


def _beside(runs: Sequence[Run]) -> str:
    """The baselines, where there are any."""
    alone, pooled = (_by_seed(runs, name) for name in (LOCAL_ONLY, CENTRALISED))
    if not (alone and pooled):
        return ""
    return (
        f" Volunteers alone end at {_in_words(alone)}, all texts on one machine at "
        f"{_in_words(pooled)}."
    )


def _by_seed(runs: Sequence[Run], name: str) -> dict[int, float]:
    return {
        run.seed: run.loss
        for run in runs
        if run.name == name and run.reached and run.loss is not None
    }


def _always_below(one: dict[int, float], other: dict[int, float]) -> bool:
    return all(one[seed] < other[seed] for seed in one)


def _in_words(losses: dict[int, float]) -> str:
    values = list(losses.values())
    between = f" ± {pstdev(values):.3f}" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{between}"
