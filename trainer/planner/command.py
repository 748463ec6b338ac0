"""`python -m trainer plan`: what training asks of a machine, as a table, and whether it fits."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from trainer.launcher.place import Unusable
from trainer.planner import compute, devices
from trainer.planner.books import Book, of_model, of_recipe
from trainer.planner.fit import judge
from trainer.planner.shapes import SHAPES
from trainer.planner.traffic import day_bytes, transfer_s
from trainer.planner.training import FROZEN_BYTES, OPTIMIZERS, PRECISIONS, Part, total
from trainer.planner.words import count, duration, size
from trainer.recipe import CODEC_BYTES, Recipe

LINK_MBIT_S = 10.0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", type=Path, nargs="?", help="JSON file of a recipe; or")
    model = parser.add_argument_group("instead of a recipe")
    model.add_argument("--parameters", type=float, help="for example 7e9")
    model.add_argument("--model", choices=SHAPES, help="a well-known one")
    model.add_argument("--precision", choices=PRECISIONS, default="fp32", help="default: fp32")
    model.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw", help="default: adamw")
    model.add_argument("--zero", type=int, default=0, help="ZeRO stage: 1, 2 or 3")
    model.add_argument("--gpus", type=int, default=1, help="that share the work by ZeRO")
    model.add_argument("--lora", type=int, default=0, metavar="RANK", help="adapters of q and v")
    model.add_argument("--base", choices=FROZEN_BYTES, default="fp16", help="LoRA's frozen weights")
    model.add_argument("--length", type=int, default=512, help="tokens of a sequence")
    model.add_argument("--checkpointing", action="store_true", help="of activations")
    model.add_argument("--codec", choices=CODEC_BYTES, default="fp16", help="of averages")
    parser.add_argument("--sequences", type=int, default=0, help="at once")
    parser.add_argument("--device", action="append", default=[], help="does it fit? see --devices")
    parser.add_argument("--devices", action="store_true", help="list the known ones")
    parser.add_argument("--round-s", type=float, default=0.0, help="how long a round takes")
    parser.add_argument("--volunteers", default="", help="who computes: t4:3,laptop:10")
    parser.add_argument("--utilisation", type=float, default=compute.UTILISATION)
    parser.add_argument("--hours-a-day", type=float, default=compute.HOURS_A_DAY)
    parser.set_defaults(act=plan)


def plan(given: argparse.Namespace) -> int:
    """0; 1 when a device was asked about that it does not fit. Raises Unusable."""
    if given.devices:
        print(*_catalogue(), sep="\n")
        return 0
    try:
        asked = [devices.find(key) for key in given.device]
        book = _book(given, on_gpu=any(device.is_gpu for device in asked[:1]))
        answers = [(one.name, judge(_book(given, on_gpu=one.is_gpu).parts, one)) for one in asked]
        lines = [book.title, *_table(book.parts), *_traffic(book, given), *_work(book, given)]
    except ValidationError as error:
        raise Unusable(f"{given.recipe} is no recipe: {error}") from error
    except ValueError as error:
        raise Unusable(f"This cannot be planned: {error}.") from error
    print(
        *lines, *book.remarks, *(f"{name}: {answer.words}." for name, answer in answers), sep="\n"
    )
    return int(not all(answer.fits for _, answer in answers))


def _book(given: argparse.Namespace, *, on_gpu: bool) -> Book:
    if bool(given.recipe) + bool(given.model) + bool(given.parameters) != 1:
        raise ValueError("give a recipe file, or --model, or --parameters, and only one of them")
    if not given.recipe:
        return of_model(given)
    return of_recipe(_recipe(given.recipe), given.sequences, on_gpu=on_gpu)


def _recipe(path: Path) -> Recipe:
    try:
        return Recipe.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        raise Unusable(f"{path} is no JSON: {error}.") from error


def _table(parts: Sequence[Part]) -> Iterable[str]:
    width = max(len(part.name) for part in parts)
    for part in parts:
        yield f"  {part.name:<{width}}  {size(part.bytes):>8}  {part.words}"
    yield f"  {'together':<{width}}  {size(total(parts)):>8}"


def _traffic(book: Book, given: argparse.Namespace) -> Iterable[str]:
    round_s = given.round_s or book.round_s
    if round_s <= 0:
        raise ValueError(f"a round of {round_s:g} s makes no sense")
    yield (
        f"A round moves at most {size(book.round_bytes)} to and from each device, "
        f"{duration(transfer_s(book.round_bytes, LINK_MBIT_S) / 3600)} at {LINK_MBIT_S:g} Mbit/s; "
        f"{size(day_bytes(book.round_bytes, round_s))} a day, if a round takes {round_s:g} s."
    )


def _work(book: Book, given: argparse.Namespace) -> Iterable[str]:
    """Tokens, and how long the volunteers take for them."""
    if not book.used:
        return
    tokens = compute.tokens_for(book.parameters)
    flops = compute.training_flops(book.used, tokens)
    yield (
        f"Trained from the beginning it should see about {count(tokens)} tokens (20 a parameter, "
        f"Chinchilla): {flops:.2e} FLOP."
    )
    if given.volunteers:
        speed = sum(number * _speed(key) for key, number in _volunteers(given.volunteers))
        hours = compute.hours(flops, speed, given.utilisation)
        if not 0 < given.hours_a_day <= 24:
            raise ValueError(f"a day has no {given.hours_a_day:g} hours")
        yield (
            f"{given.volunteers} at {given.utilisation:.0%} of their speed in fp32, "
            f"{given.hours_a_day:g} hours a day: {duration(hours * 24 / given.hours_a_day)}."
        )


def _volunteers(text: str) -> list[tuple[str, int]]:
    found = []
    for item in text.split(","):
        key, _, number = item.partition(":")
        if not (number or "1").isdigit():
            raise ValueError(f"{item!r} names no number of devices: write t4:3 for three of them")
        found.append((key.strip(), int(number or 1)))
    return found


def _speed(key: str) -> float:
    device = devices.find(key)
    if "fp32" not in device.flops:
        raise ValueError(f"nobody knows how fast {device.name} is. {device.remark}".rstrip("."))
    return device.flops["fp32"]


def _catalogue() -> Iterable[str]:
    for key, device in devices.DEVICES.items():
        speeds = ", ".join(f"{kind} {flops / 1e12:g}" for kind, flops in device.flops.items())
        yield (
            f"{key:<13} {device.name}: {size(device.memory_bytes)}, "
            f"{device.bandwidth_bytes_s / 1e9:g} GB/s; TFLOP/s: {speeds or 'unknown'}. "
            f"{device.remark + ' ' if device.remark else ''}[{device.source}]"
        )
