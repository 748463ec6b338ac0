"""Which collaboration a device gets that did not pick one: by fit, need and fairness.

A device that is too small for some of them gets of the others what it can do most for: all of a
model, LoRA, the top layers, then with part of each pass computed again, then with frozen layers
read from disk, then to evaluate and train nothing; and of those that suit it as well, where the
fewest devices are at work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from trainer.catalogue import adapter_of
from trainer.planner.fit import Verdict, judge_machine
from trainer.planner.ways import Way
from trainer.recipe import Recipe
from trainer.wire import Machine
from webapp.collaborations import access
from webapp.collaborations.models import Collaboration, State
from webapp.devices.models import Device
from webapp.devices.selectors import at_work

ON_ITS_WAY = timedelta(minutes=2)  # from being placed to the first sign of life there
NOTHING_OPEN = "No collaboration is open now."
OWN_TEXTS = "trains on texts of volunteers' own, which only their owners can choose"


@dataclass(frozen=True)
class Placement:
    """`reason` is for the volunteer; `collaboration` None: there is none for this device now."""

    collaboration: Collaboration | None
    reason: str


@transaction.atomic
def place(device: Device, machine: Machine, *, now: datetime) -> Placement:
    """Where the site put it before, while that goes on; else where the fewest devices are at work.

    Only collaborations count that are open to its owner and fit the machine as far as it tells.
    Calls take turns, so that devices which ask at the same time are spread.
    """
    going_on = Collaboration.objects.filter(state__in=(State.OPEN, State.RUNNING))
    open_to_it = [
        each
        for each in going_on.select_for_update().order_by("created_at", "pk")
        if access.may(device.owner, "join", each)
    ]
    device.refresh_from_db(fields=["placed_in", "placed_because"])
    device.machine = machine.model_dump(mode="json")
    device.save(update_fields=["machine"])
    verdicts = {each: _verdict(machine, each.recipe) for each in open_to_it}
    fitting = {each: verdict for each, verdict in verdicts.items() if verdict.fits}
    if not fitting:
        return Placement(None, _why_nowhere(verdicts.items()))
    if stays := next((each for each in fitting if each.pk == device.placed_in_id), None):
        return Placement(stays, device.placed_because)
    is_small = any(
        not each.recipe.is_private and (not verdict.fits or verdict.way)
        for each, verdict in verdicts.items()
    )
    return _put(device, fitting, now, is_small=is_small)


def _put(
    device: Device, fitting: dict[Collaboration, Verdict], now: datetime, *, is_small: bool
) -> Placement:
    busy = at_work(list(fitting), since=now - ON_ITS_WAY, besides=device)
    turns = {each: _turn(each.recipe, verdict.way) for each, verdict in fitting.items()}
    first = min(turns.values())
    suiting = [each for each, turn in turns.items() if turn == first or not is_small]
    chosen = min(suiting, key=lambda each: busy[each.pk])
    reason = _why(busy[chosen.pk], len(suiting), len(fitting))
    if what := _what(chosen.recipe, fitting[chosen].way):
        reason = f"{reason} {what}"
    placed = {"placed_in": chosen, "placed_at": now, "placed_because": reason}
    Device.objects.filter(pk=device.pk).update(**placed)
    return Placement(chosen, reason)


def _verdict(machine: Machine, recipe: Recipe) -> Verdict:
    """Whether the site may put it there, and why not."""
    if recipe.is_private:
        return Verdict(False, OWN_TEXTS)
    known = judge_machine(recipe, machine.memory_bytes, machine.accelerator)
    return known or Verdict(True, "tells nothing of its memory")


def _turn(recipe: Recipe, way: Way) -> tuple[Way, int]:
    """What a small device gets first is the least."""
    adapter = adapter_of(recipe)
    return way, adapter.turn if adapter else 0


def _why(devices: int, choices: int, fitting: int) -> str:
    """Where it is one of `choices` that suit the device alike, among more that are `fitting`."""
    if fitting == 1:
        return "It is the only open collaboration that fits this device."
    if choices == 1:
        return f"Of {fitting} open collaborations that fit this device, this one suits it best."
    at_work = {0: "no device is at work there", 1: "only one device is at work there"}
    count = at_work.get(devices, f"the fewest devices are at work there: {devices}")
    which = "suit this device best" if choices < fitting else "fit this device"
    return f"Of {choices} open collaborations that {which}, this one needs it most: {count}."


def _what(recipe: Recipe, way: Way) -> str:
    """What it does there; "" where that is all that there is to do."""
    adapter = adapter_of(recipe)
    if way is Way.EVALUATING:
        return "It trains nothing there, but measures the model with parts of the held-out text."
    if adapter is None and not way.words:
        return ""
    trains = adapter.trains if adapter else "all of the model"
    return f"It trains {', '.join(filter(None, (trains, way.words)))}."


def _why_nowhere(verdicts: Iterable[tuple[Collaboration, Verdict]]) -> str:
    words: Iterator[str] = (f"{each.title} {verdict.words}" for each, verdict in verdicts)
    listed = "; ".join(words)
    if not listed:
        return NOTHING_OPEN
    return f"No open collaboration is for this device: {listed}"[:299].rstrip(" .") + "."
