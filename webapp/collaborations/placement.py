"""Which collaboration a device gets that did not pick one: by fit, need and fairness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from trainer.planner.fit import judge_machine
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
    obstacles = {each: _obstacle(machine, each) for each in open_to_it}
    fitting = [each for each, obstacle in obstacles.items() if not obstacle]
    if not fitting:
        return Placement(None, _why_nowhere(obstacles.items()))
    if stays := next((each for each in fitting if each.pk == device.placed_in_id), None):
        return Placement(stays, device.placed_because)
    return _put(device, fitting, now)


def _put(device: Device, fitting: list[Collaboration], now: datetime) -> Placement:
    busy = at_work(fitting, since=now - ON_ITS_WAY, besides=device)
    chosen = min(fitting, key=lambda each: busy[each.pk])
    reason = _why(busy[chosen.pk], len(fitting))
    placed = {"placed_in": chosen, "placed_at": now, "placed_because": reason}
    Device.objects.filter(pk=device.pk).update(**placed)
    return Placement(chosen, reason)


def _obstacle(machine: Machine, collaboration: Collaboration) -> str:
    """Why the site does not put it there; "": it may."""
    recipe = collaboration.recipe
    if recipe.is_private:
        return OWN_TEXTS
    verdict = judge_machine(recipe, machine.memory_bytes, machine.accelerator)
    return "" if verdict is None or verdict.fits else verdict.words


def _why(devices: int, choices: int) -> str:
    if choices == 1:
        return "It is the only open collaboration that fits this device."
    at_work = {0: "no device is at work there", 1: "only one device is at work there"}
    count = at_work.get(devices, f"the fewest devices are at work there: {devices}")
    fitting = f"Of {choices} open collaborations that fit this device"
    return f"{fitting}, this one needs it most: {count}."


def _why_nowhere(obstacles: Iterable[tuple[Collaboration, str]]) -> str:
    words: Iterator[str] = (f"{each.title} {obstacle}" for each, obstacle in obstacles)
    listed = "; ".join(words)
    if not listed:
        return NOTHING_OPEN
    return f"No open collaboration is for this device: {listed}"[:299].rstrip(" .") + "."
