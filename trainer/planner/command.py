"""`python -m trainer plan`: what training asks of a machine, as a table, and whether it fits."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from trainer.launcher.place import Unusable
from trainer.parts import first_problem
from trainer.planner import compute, devices
from trainer.planner.books import Book, Setting, of_model, of_recipe
from trainer.planner.fit import Verdict, judge, judge_device
from trainer.planner.shapes import SHAPES
from trainer.planner.traffic import day_bytes, transfer_s
from trainer.planner.training import FROZEN_BYTES, OPTIMIZERS, PRECISIONS, Part, total
from trainer.planner.words import count, duration, size
from trainer.recipe import Recipe

LINK_MBIT_S = 10.0
MOST_PARAMETERS, MOST_SEQUENCES = 1e18, 10**6
KNOWN = f"Name a recipe's file, so many parameters, as 7e9, or one of {', '.join(SHAPES)}."


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="?",
        default="",
        help=f"JSON file of a recipe; or {', '.join(SHAPES)}; or so many parameters, as 7e9. "
        "Without it: the known devices",
    )
    parser.add_argument("--device", action="append", default=[], help="does it fit?")
    parser.add_argument("--volunteers", default="", help="who computes: t4:3,laptop:10")
    parser.add_argument("--utilisation", type=float, default=compute.UTILISATION)
    parser.add_argument("--sequences", type=int, default=0, help="at once")
    model = parser.add_argument_group("not for a recipe")
    model.add_argument("--precision", choices=PRECISIONS, default="fp32", help="default: fp32")
    model.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw", help="default: adamw")
    model.add_argument("--zero", default="0:1", metavar="STAGE:GPUS", help="ZeRO, as 3:8")
    model.add_argument(
        "--lora",
        default="",
        metavar="RANK[:BASE]",
        help=f"adapters of q and v on frozen weights in {', '.join(FROZEN_BYTES)}, as 8:nf4",
    )
    parser.set_defaults(act=plan)


def plan(given: argparse.Namespace) -> int:
    """0; 1 when a device was asked about that it does not fit. Raises Unusable."""
    if not given.what:
        print(*_catalogue(), sep="\n")
        return 0
    try:
        _check_numbers(given)
        asked = [devices.find(key) for key in given.device]
        book = _book(given, on_gpu=any(device.is_gpu for device in asked[:1]))
        answers = [(device.name, _judged(given, device)) for device in asked]
        lines = [book.title, *_table(book.parts), _traffic(book), *_work(book, given)]
    except ValidationError as error:
        raise Unusable(f"{given.what} is no recipe: {first_problem(error)}") from error
    except ValueError as error:
        raise Unusable(f"This cannot be planned: {error}.") from error
    print(
        *lines, *book.remarks, *(f"{name}: {answer.words}." for name, answer in answers), sep="\n"
    )
    return int(not all(answer.fits for _, answer in answers))


def _check_numbers(given: argparse.Namespace) -> None:
    """Raises ValueError for one that makes no sense."""
    if not 0 < given.utilisation <= 1:
        raise ValueError(
            f"a utilisation of {given.utilisation:g} makes no sense: it is between 0 and 1"
        )
    if not 0 <= given.sequences <= MOST_SEQUENCES:
        raise ValueError(
            f"{given.sequences} sequences at once make no sense: at most {MOST_SEQUENCES:,} do"
        )


def _judged(given: argparse.Namespace, device: devices.Device) -> Verdict:
    """A recipe's in the best way that fits."""
    if (path := Path(given.what)).is_file():
        return judge_device(_recipe(path), device, given.sequences or None)
    return judge(_book(given, on_gpu=device.is_gpu).parts, device)


def _book(given: argparse.Namespace, *, on_gpu: bool) -> Book:
    if given.what in SHAPES:
        return of_model(given.what, SHAPES[given.what].parameters, _setting(given))
    try:
        parameters = float(given.what)
    except ValueError:
        return of_recipe(_recipe(Path(given.what)), given.sequences, on_gpu=on_gpu)
    if not 1 <= parameters <= MOST_PARAMETERS:
        raise ValueError(f"{given.what} parameters make no sense: from 1 to {MOST_PARAMETERS:g} do")
    return of_model("A model", parameters, _setting(given))


def _setting(given: argparse.Namespace) -> Setting:
    """Raises ValueError where an option is written wrongly."""
    rank, _, base = given.lora.partition(":")
    stage, _, gpus = given.zero.partition(":")
    if not (stage.isdigit() and gpus.isdigit() and (rank or "0").isdigit()):
        raise ValueError("write --zero 3:8 for stage 3 on 8 GPUs, and --lora 8 or 8:nf4")
    if base and base not in FROZEN_BYTES:
        raise ValueError(f"{base!r} is none of {', '.join(FROZEN_BYTES)}")
    return Setting(
        precision=given.precision,
        optimizer=given.optimizer,
        zero=int(stage),
        gpus=int(gpus),
        rank=int(rank or 0),
        base=base or "fp16",
        sequences=given.sequences or 1,
    )


def _recipe(path: Path) -> Recipe:
    try:
        return Recipe.model_validate_json(path.read_bytes())
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}. {KNOWN}") from error


def _table(parts: Sequence[Part]) -> Iterable[str]:
    width = max(len(part.name) for part in parts)
    for part in parts:
        yield f"  {part.name:<{width}}  {size(part.bytes):>8}  {part.words}"
    yield f"  {'together':<{width}}  {size(total(parts)):>8}"


def _traffic(book: Book) -> str:
    return (
        f"A round moves at most {size(book.round_bytes)} to and from each device, "
        f"{duration(transfer_s(book.round_bytes, LINK_MBIT_S) / 3600)} at {LINK_MBIT_S:g} Mbit/s; "
        f"{size(day_bytes(book.round_bytes, book.round_s))} a day, if a round takes "
        f"{book.round_s:g} s."
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
        yield (
            f"{given.volunteers} at {given.utilisation:.0%} of their speed in fp32, day and night: "
            f"{duration(hours)}."
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
