"""The registry of a collaboration's checkpoints, as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.utils import timezone

from webapp.artifacts.models import Checkpoint
from webapp.collaborations.models import Collaboration
from webapp.registry.retention import held_out_losses, why_kept

PAGE_SIZE = 25


@dataclass(frozen=True)
class Row:
    """`why` it is kept, in words; empty: the next job retires it, or it is retired."""

    checkpoint: Checkpoint
    held_out_loss: float | None
    why: str

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
    """How much of a collaboration is kept."""

    kept: int
    kept_bytes: int
    retired: int


def rows(collaboration: Collaboration, page: int | str = 1) -> tuple[Page[Checkpoint], list[Row]]:
    """Newest first, with those that were retired; a page out of range gives the nearest."""
    found = collaboration.checkpoints.select_related("artifact", "model")
    shown = Paginator(found, PAGE_SIZE).get_page(page)
    here = list(shown)
    losses, reasons = held_out_losses(here), why_kept(collaboration, timezone.now())
    return shown, [Row(one, losses.get(one.pk), reasons.get(one.pk, "")) for one in here]


def stock(collaboration: Collaboration) -> Stock:
    sizes = collaboration.checkpoints.values_list("artifact__size_bytes", "model__size_bytes")
    kept = [(own, model or 0) for own, model in sizes if own is not None]
    return Stock(len(kept), sum(map(sum, kept)), len(sizes) - len(kept))
