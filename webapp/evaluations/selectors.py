"""Reads about evaluations, as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webapp.collaborations.models import Collaboration
from webapp.evaluations.models import Evaluation, Task

MOST_ROWS = 100
# Of each score: its name and what it is multiplied with.
SCORES = {
    "perplexity": ("Perplexity", 1),
    "pseudo_perplexity": ("Pseudo-perplexity", 1),
    "span_perplexity": ("Perplexity of missing spans", 1),
    "masked_perplexity": ("Perplexity of masked tokens", 1),
    "loss": ("Loss per token", 1),
    "accuracy": ("Accuracy, %", 100),
    "macro_f1": ("Macro F1, %", 100),
    "span_f1": ("Span F1, %", 100),
    "word_accuracy": ("Accuracy by word, %", 100),
}
Shown = tuple[float, float | None, int] | None


@dataclass(frozen=True)
class Line:
    """One row of a task's table: a checkpoint's (with its evaluation), or a baseline's. Scores
    are (mean, std, n), in the order of the table's columns; None where nothing is known."""

    name: str
    scores: list[Shown]
    source: str = ""
    evaluation: Evaluation | None = None
    baseline: int | None = None  # its key, where an organiser entered it


@dataclass(frozen=True)
class Table:
    task: Task
    columns: list[str]
    checkpoints: list[Line]
    baselines: list[Line]
    data: dict[str, int]  # counts of the newest result


def tables(collaboration: Collaboration) -> list[Table]:
    found = Task.objects.filter(collaboration=collaboration).select_related("text")
    return [_table(task) for task in found.prefetch_related("baselines")]


def _table(task: Task) -> Table:
    """Checkpoints newest first."""
    rows = list(task.evaluations.select_related("checkpoint").order_by("-round")[:MOST_ROWS])
    done: list[dict[str, Any]] = [row.result for row in rows if row.result is not None]
    names = list(done[0]["scores"]) if done else []
    if names:  # what it is judged by comes first
        names.sort(key=lambda name: name != done[0]["metric"])
    return Table(
        task,
        [SCORES[name][0] for name in names],
        [Line(str(row.round), _scores(row, names), evaluation=row) for row in rows],
        _entered(task, names) + _computed(done, names),
        done[0]["data"] if done else {},
    )


def _scores(row: Evaluation, names: list[str]) -> list[Shown]:
    """None yet where it is not finished."""
    if row.result is None:
        return []
    scores = row.result["scores"]
    return [_shown(name, scores[name]) if name in scores else None for name in names]


def _shown(name: str, score: dict[str, Any]) -> Shown:
    times = SCORES[name][1]
    std = None if score["std"] is None else times * score["std"]
    return times * score["mean"], std, score["n"]


def _entered(task: Task, names: list[str]) -> list[Line]:
    """Their score is by what the task is judged by, and written as the table shows it."""
    rest: list[Shown] = [None] * (len(names) - 1)
    return [
        Line(one.name, [(one.score, one.std, 0), *rest], one.source, baseline=one.pk)
        for one in task.baselines.all()
    ]


def _computed(done: list[dict[str, Any]], names: list[str]) -> list[Line]:
    """Those that the newest evaluation computed beside the model."""
    lines = []
    for one in done[0]["baselines"] if done else []:
        known = one["scores"]
        scores: list[Shown] = [
            (SCORES[name][1] * known[name], None, 0) if name in known else None for name in names
        ]
        lines.append(Line(one["name"], scores))
    return lines
