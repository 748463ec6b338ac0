"""The registry of a collaboration's checkpoints, as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.paginator import Page, Paginator
from django.utils import timezone

from webapp.artifacts.models import Checkpoint
from webapp.artifacts.selectors import newest_checkpoint
from webapp.collaborations.models import Collaboration, State
from webapp.registry.models import Packing
from webapp.registry.retention import held_out_losses, why_kept

PAGE_SIZE = 25
COORDINATOR_S = timedelta(minutes=2)  # it writes a last checkpoint and leaves within a minute


@dataclass(frozen=True)
class Row:
    """`why` it is kept, in words; empty: the next job retires it, or it is retired."""

    checkpoint: Checkpoint
    held_out_loss: float | None
    why: str
    packing: Packing | None

    @property
    def is_being_packed(self) -> bool:
        return self.packing is not None and not self.packing.is_over

    @property
    def sha256(self) -> str:
        file = self.checkpoint.artifact
        return file.sha256 if file else self.checkpoint.sha256

    @property
    def size_bytes(self) -> int:
        file = self.checkpoint.artifact
        return file.size_bytes if file else self.checkpoint.size_bytes


@dataclass(frozen=True)
class Stock:
    """How much of a collaboration is kept, models too."""

    kept: int
    kept_bytes: int


def rows(collaboration: Collaboration, page: int | str = 1) -> tuple[Page[Checkpoint], list[Row]]:
    """Newest first, with those that were retired; a page out of range gives the nearest."""
    found = collaboration.checkpoints.select_related("artifact", "model")
    shown = Paginator(found, PAGE_SIZE).get_page(page)
    here = list(shown)
    losses, reasons = held_out_losses(here), why_kept(collaboration, timezone.now())
    packings = {one.checkpoint_id: one for one in Packing.objects.filter(checkpoint__in=here)}
    return shown, [
        Row(one, losses.get(one.pk), reasons.get(one.pk, ""), packings.get(one.pk)) for one in here
    ]


def final_ones(now: datetime) -> list[Checkpoint]:
    """The newest of each collaboration that is finished, once its coordinator is surely gone."""
    over = Collaboration.objects.filter(state=State.FINISHED, finished_at__lt=now - COORDINATOR_S)
    return [one for one in map(newest_checkpoint, over) if one is not None]


def stock(collaboration: Collaboration) -> Stock:
    sizes = collaboration.checkpoints.values_list("artifact__size_bytes", "model__size_bytes")
    kept = [(own, model or 0) for own, model in sizes if own is not None]
    return Stock(len(kept), sum(map(sum, kept)))
