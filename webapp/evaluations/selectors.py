"""Reads about evaluations, as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from webapp.collaborations.models import Collaboration
from webapp.evaluations.models import Evaluation, Task

MOST_ROWS = 100
# Of each score: its name and what it is multiplied with; what a task is judged by comes first.
SCORES = {
    "perplexity": ("Perplexity", 1),
    "pseudo_perplexity": ("Pseudo-perplexity", 1),
    "prefix_perplexity": ("Perplexity after a prefix", 1),
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
    starts: int = 0  # that are done, where that is not all
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
    found = task.evaluations.select_related("checkpoint").prefetch_related("starts")
    rows = [(row, scores_of(row)) for row in found.order_by("-round")[:MOST_ROWS]]
    results = [row.result for row, _ in rows if row.result is not None]
    newest = next((scores for _, scores in rows if scores), {})
    names = sorted(newest, key=list(SCORES).index)
    return Table(
        task,
        [SCORES[name][0] for name in names],
        [_line(row, scores, names) for row, scores in rows],
        _entered(task, names) + _computed(results, names),
        results[0]["data"] if results else {},
    )


def scores_of(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Of each score mean, std (the sample's) and n; before its end, of the starts that are done."""
    if evaluation.result is not None:
        return dict(evaluation.result["scores"])
    rows = [start.scores for start in evaluation.starts.all()]
    found = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        std = stdev(values) if len(values) > 1 else None
        found[name] = {"mean": mean(values), "std": std, "n": len(values)}
    return found


def _line(row: Evaluation, scores: dict[str, dict[str, Any]], names: list[str]) -> Line:
    shown = [_shown(name, scores[name]) if name in scores else None for name in names]
    done = len(row.starts.all()) if row.result is None else 0
    return Line(str(row.round), shown if scores else [], evaluation=row, starts=done)


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
