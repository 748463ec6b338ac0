"""What an evaluation found: each score with its mean over the starts, and baselines beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean, stdev
from typing import Any

NAMES = {
    "perplexity": "perplexity",
    "pseudo_perplexity": "pseudo-perplexity",
    "prefix_perplexity": "perplexity after a prefix",
    "span_perplexity": "perplexity of missing spans",
    "masked_perplexity": "perplexity of masked tokens",
    "loss": "loss per token",
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "span_f1": "span F1 (seqeval)",
    "word_accuracy": "accuracy by word",
}


@dataclass(frozen=True)
class Score:
    """One value for each start; `std` is the sample's (n - 1), None of a single value."""

    name: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return mean(self.values)

    @property
    def std(self) -> float | None:
        return stdev(self.values) if len(self.values) > 1 else None

    def as_json(self) -> dict[str, Any]:
        return {"mean": self.mean, "std": self.std, "n": len(self.values), "values": self.values}

    def written(self) -> str:
        spread = "" if self.std is None else f" ± {self.std:.4f} (n = {len(self.values)})"
        return f"{self.mean:.4f}{spread}"


@dataclass(frozen=True)
class Baseline:
    name: str
    scores: dict[str, float]


@dataclass(frozen=True)
class Result:
    """The first of `scores` is what the task is judged by. `data`: counts, in words for people."""

    task: str
    scores: tuple[Score, ...]
    baselines: tuple[Baseline, ...]
    data: dict[str, int]
    seconds: float = 0.0
    model: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        found = {score.name: score.as_json() for score in self.scores}
        return asdict(self) | {"metric": self.scores[0].name, "scores": found}

    def table(self) -> list[str]:
        names = [score.name for score in self.scores]
        rows = [("", *(NAMES[name] for name in names))]
        rows.append(("this model", *(score.written() for score in self.scores)))
        for baseline in self.baselines:
            known = (baseline.scores.get(name) for name in names)
            rows.append((baseline.name, *("" if x is None else f"{x:.4f}" for x in known)))
        counts = ", ".join(f"{what}: {count:,}" for what, count in self.data.items())
        return [*_aligned(rows), f"{counts}; {self.seconds:.0f} s"]


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
