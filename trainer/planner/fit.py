"""Whether a machine can hold what training asks of it, in which way, and why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trainer.planner.devices import Device, computer, named
from trainer.planner.need import need_of
from trainer.planner.training import Part, total
from trainer.planner.ways import Way, ways_of
from trainer.planner.words import size
from trainer.recipe import Recipe

NO_GPU = "CPU"


@dataclass(frozen=True)
class Verdict:
    fits: bool
    words: str
    way: Way = Way.PLAIN


def judge(parts: Sequence[Part], device: Device) -> Verdict:
    """A GPU holds what is not `on_host`; a computer without one holds everything."""
    held = [part for part in parts if not (device.is_gpu and part.on_host)]
    needed, usable = total(held), device.usable_bytes
    room = f"of its {size(device.memory_bytes)} about {size(usable)} can be used"
    beside = total(parts) - needed
    more = f"; its computer needs {size(beside)} more" if beside else ""
    if needed <= usable:
        return Verdict(True, f"fits: needs {size(needed)}, and {room}{more}")
    largest = sorted(held, key=lambda part: part.bytes, reverse=True)[:2]
    most = " and ".join(f"{part.name} ({size(part.bytes)})" for part in largest)
    return Verdict(
        False, f"does not fit, because it needs {size(needed)}, and {room}; most of it is {most}"
    )


def judge_device(recipe: Recipe, device: Device, sequences: int | None = None) -> Verdict:
    """By the best way in which it fits; by the last where there is none."""
    return _best(recipe, lambda parts: judge(parts, device), device.is_gpu, sequences)


def judge_machine(recipe: Recipe, memory_bytes: int, accelerator: str = NO_GPU) -> Verdict | None:
    """By what a device tells of itself; None where that is too little.

    A GPU that the catalogue does not know is taken to be large enough.
    """
    if not memory_bytes:
        return None
    on_gpu = accelerator != NO_GPU
    gpu = named(accelerator) if on_gpu else None

    def whole(parts: Sequence[Part]) -> Verdict:
        if gpu is not None and not (verdict := judge(parts, gpu)).fits:
            return verdict
        own = [part for part in parts if part.on_host or not on_gpu]
        return judge(own, computer(memory_bytes))

    return _best(recipe, whole, on_gpu)


def _best(
    recipe: Recipe,
    judged: Callable[[Sequence[Part]], Verdict],
    on_gpu: bool,
    sequences: int | None = None,
) -> Verdict:
    verdict = Verdict(False, "")
    for way in ways_of(recipe):
        rows = sequences if way is Way.PLAIN else None
        verdict = replace(judged(need_of(recipe, rows, on_gpu=on_gpu, way=way).parts), way=way)
        if verdict.fits:
            more = f"; {way.words}" if way.words else ""
            return replace(verdict, words=f"{verdict.words}{more}")
    return verdict
