"""A head on a model, trained with it on labelled data for a few epochs from one random start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from trainer.evaluation.model import Evaluated
from trainer.evaluation.report import Report, Scores

ROWS = 16
DROPOUT = 0.1
WARM_UP = 0.1  # of all steps; then the rate falls to 0 in a straight line
DECAY, CLIP = 0.01, 1.0


class Item(NamedTuple):
    """Token ids and labels: one for each of `places`, or, where there are none, one for all."""

    ids: list[int]
    places: list[int]
    labels: list[int]


class Plan(NamedTuple):
    """How long and how fast a head is trained; how many random starts there are."""

    starts: int
    epochs: int
    rate: float


def scores_by_start(
    model: Evaluated,
    train: Sequence[Item],
    test: Sequence[Item],
    num_labels: int,
    plan: Plan,
    report: Report,
    scored: Callable[[list[list[int]]], Scores],
) -> list[Scores]:
    """What `scored` says of the labels that each start gives the items of the test, after its last
    epoch; starts that the report has already are not done again.

    Nothing is chosen by what the test says. A start decides the head's first values, the order of
    the items and the dropout. Raises ValueError.
    """
    for start in range(plan.starts):
        if start in report.starts:
            continue
        torch.manual_seed(start)
        net = Labeller(model, num_labels)

        def told(done: float, start: int = start) -> None:
            report(f"start {start + 1} of {plan.starts}", (start + done) / plan.starts)

        _train(net, train, plan, told)
        found = _predict(net, test)
        del net  # before the next one is there
        report.found(start, scored(found), (start + 1) / plan.starts)
    return [report.starts[start] for start in range(plan.starts)]


class Labeller(nn.Module):
    """Scores of labels from the last hidden states: of single places, or of their mean."""

    def __init__(self, model: Evaluated, num_labels: int) -> None:
        super().__init__()
        self.body: Any = model.body()
        self.pad = model.tokenizer.pad
        self.device = next(self.body.parameters()).device
        self.head = nn.Linear(model.config.hidden_size, num_labels).to(self.device)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, items: Sequence[Item]) -> Tensor:
        """Shape (labels of all items, number of labels)."""
        longest = max(len(item.ids) for item in items)
        rows = [item.ids + [self.pad] * (longest - len(item.ids)) for item in items]
        ids = torch.tensor(rows, device=self.device)
        lengths = torch.tensor([[len(item.ids)] for item in items], device=self.device)
        attention = (torch.arange(longest, device=self.device) < lengths).long()
        hidden = self.body(input_ids=ids, attention_mask=attention).last_hidden_state
        places = [(row, place) for row, item in enumerate(items) for place in item.places]
        if places:
            row, place = torch.tensor(places, device=self.device).T
            chosen = hidden[row, place]
        else:
            chosen = (hidden * attention[:, :, None]).sum(1) / lengths
        return self.head(self.dropout(chosen))  # type: ignore[no-any-return]


def _train(net: Labeller, items: Sequence[Item], plan: Plan, told: Callable[[float], None]) -> None:
    optimizer = torch.optim.AdamW(net.parameters(), lr=plan.rate, weight_decay=DECAY)
    steps = plan.epochs * -(-len(items) // ROWS)
    warm_up = max(1, round(WARM_UP * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warm_up, (steps - step) / max(1, steps - warm_up)),
    )
    net.train()
    for step, batch in enumerate(_in_order_by_lot(items, plan.epochs), 1):
        labels = torch.tensor([label for item in batch for label in item.labels])
        loss = cross_entropy(net(batch), labels.to(net.device))
        if not torch.isfinite(loss):
            raise ValueError("the loss is not finite: the model is damaged, or --rate too high")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        told(step / steps)


def _in_order_by_lot(items: Sequence[Item], epochs: int) -> Iterator[list[Item]]:
    for _ in range(epochs):
        order = torch.randperm(len(items)).tolist()
        for first in range(0, len(order), ROWS):
            yield [items[number] for number in order[first : first + ROWS]]


@torch.no_grad()
def _predict(net: Labeller, items: Sequence[Item]) -> list[list[int]]:
    """Items of like lengths together; the answers are in the items' order."""
    net.eval()
    order = sorted(range(len(items)), key=lambda number: len(items[number].ids))
    found: list[list[int]] = [[] for _ in items]
    for first in range(0, len(order), ROWS):
        numbers = order[first : first + ROWS]
        best = net([items[number] for number in numbers]).argmax(1).tolist()
        for number in numbers:
            count = len(items[number].labels)
            found[number], best = best[:count], best[count:]
    return found
