"""What a base is, read from its folder without torch: files, sizes, matrices, special tokens.

The first bytes of a safetensors file are the length of a JSON header, which names all tensors with
their shapes.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from trainer.parts import BASE_FILE, Base, File, Matrix, Precision, Special, first_problem
from trainer.stacks import stack_of

MOST_HEADER_BYTES = 100_000_000
TURNED = ("gpt2", "openai-gpt")  # whose layers (Conv1D) hold weights as inputs x outputs
WHOLE = "model.safetensors"  # what is loaded where it is there, whatever an index says
NOT_LINEAR = ("embed", "bias")  # weights with two dimensions that are looked up
# Roles, and what transformers' own files call them, the usual name first.
ROLES = {
    "pad": ("pad_token", "eos_token", "sep_token"),
    "end": ("sep_token", "eos_token"),
    "start": ("cls_token", "bos_token"),
    "unknown": ("unk_token",),
    "mask": ("mask_token",),
}


Kind = Literal["site", "http", "hub", "local"]


class NotABase(ValueError):
    """The folder holds no model that could be one, in words."""


def matrix_name(path: str) -> str:
    """What a weight is called in its layer: what comes after the last number; "" outside of one.

    Weights of one layer of a model so have names of their own, and those of its head have none.
    """
    parts = path.split(".")
    numbers = [place for place, part in enumerate(parts) if part.isdigit()]
    return ".".join(parts[numbers[-1] + 1 :]) if numbers else ""


def chosen(base: Base, targets: Iterable[str]) -> list[Matrix]:
    """The matrices that `targets` name, by their whole name or its last parts.

    Raises ValueError for a target that names none.
    """
    found: dict[Matrix, None] = {}
    for target in targets:
        named = [m for m in base.matrices if f".{m.name}".endswith(f".{target}")]
        if not named:
            known = ", ".join(matrix.name for matrix in base.matrices)
            raise ValueError(f"this base has no {target} to adapt: choose among {known}")
        found |= dict.fromkeys(named)
    return list(found)


def kind_of(at: str) -> Kind:
    """Of a base that devices find there: a folder's address, or ORG/NAME of the hub."""
    return "http" if "://" in at else "hub"


def describe(
    folder: Path,
    kind: Kind = "local",
    place: str = "",
    precision: Precision = "fp32",
) -> Base:
    """Reads and hashes all of it. Raises NotABase, and OSError."""
    paths = sorted(path for path in folder.iterdir() if BASE_FILE.match(path.name))
    weights = [path for path in paths if path.suffix == ".safetensors"]
    if not weights:
        raise NotABase(
            f"{folder} holds no safetensors. Weights in another format, which may hold code, are "
            "not used: load and save them with transformers' save_pretrained first"
        )
    if folder / "config.json" not in paths:
        raise NotABase(f"{folder} has no config.json, so nobody knows what the weights are")
    _check_all_there(folder)
    shapes = [shape for path in weights for shape in _shapes(path)]
    config = _config(folder)
    try:
        return Base(
            kind=kind,
            place=place or (str(folder.resolve()) if kind == "local" else ""),
            files=tuple(_file(path) for path in paths),
            parameters=sum(math.prod(shape) for _, shape in shapes),
            matrices=_matrices(shapes, turned=config["model_type"] in TURNED),
            special=_special(folder),
            precision=precision,
            stack=stack_of(shapes, config),
        )
    except ValidationError as error:
        raise NotABase(first_problem(error)) from error


def _check_all_there(folder: Path) -> None:
    """Raises NotABase where an index names a file that is not in the folder, and is needed."""
    if (folder / WHOLE).is_file():
        return
    for index in folder.glob("*.safetensors.index.json"):
        try:
            named = set(_json(index)["weight_map"].values())
        except (KeyError, AttributeError, TypeError) as error:
            raise NotABase(f"{index} is damaged: it does not say which file has what") from error
        if missing := sorted(name for name in named if not (folder / str(name)).is_file()):
            raise NotABase(f"{missing[0]}, which {index.name} names, is not in {folder}")


def _shapes(path: Path) -> list[tuple[str, list[int]]]:
    """Of all tensors of a file. Raises NotABase, also where it was not downloaded to its end."""
    header, start = header_of(path)
    try:
        end = start + max((int(t["data_offsets"][1]) for t in header.values()), default=0)
        shapes = [(name, [int(size) for size in t["shape"]]) for name, t in header.items()]
    except (ValueError, TypeError, LookupError) as error:
        raise NotABase(f"{path} is no safetensors file: {error}") from error
    if (size := path.stat().st_size) < end:
        raise NotABase(f"{path} is cut off: {size:,} of {end:,} bytes are there. Fetch it again")
    return shapes


def header_of(path: Path) -> tuple[dict[str, Any], int]:
    """{name of a tensor: dtype, shape, data_offsets} of a safetensors file, and where data begins.

    Raises NotABase.
    """
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header: dict[str, Any] = json.loads(file.read(min(size, MOST_HEADER_BYTES)))
        header.pop("__metadata__", None)
        if not all({"dtype", "shape", "data_offsets"} <= set(t) for t in header.values()):
            raise ValueError("a tensor is not described")
    except (ValueError, TypeError, AttributeError, struct.error) as error:
        raise NotABase(f"{path} is no safetensors file: {error}") from error
    return header, 8 + size


def _config(folder: Path) -> dict[str, Any]:
    """Which has transformers' name for models of this make, `model_type`. Raises NotABase."""
    try:
        config: dict[str, Any] = _json(folder / "config.json")
        config["model_type"] = str(config["model_type"])
    except (KeyError, TypeError) as error:
        raise NotABase(f"{folder}/config.json does not say what model it is: {error!r}") from error
    return config


def _json(path: Path) -> dict[str, Any]:
    """Raises NotABase when it holds something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise NotABase(f"{path} is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise NotABase(f"{path} is damaged: it says nothing by name")
    return content


def _matrices(shapes: Iterable[tuple[str, list[int]]], *, turned: bool) -> tuple[Matrix, ...]:
    found: Counter[tuple[str, int, int]] = Counter()
    for path, shape in shapes:
        name = matrix_name(path.removesuffix(".weight"))
        is_linear = path.endswith(".weight") and not any(word in name for word in NOT_LINEAR)
        if name and len(shape) == 2 and is_linear:
            outputs, inputs = reversed(shape) if turned else shape
            found[name, inputs, outputs] += 1
    return tuple(
        Matrix(name=name, count=count, inputs=inputs, outputs=outputs)
        for (name, inputs, outputs), count in sorted(found.items())
    )


def _special(folder: Path) -> Special:
    """From what comes with its tokenizer; the names of our own tokenizers where nothing does."""
    said: dict[str, Any] = {}
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if (folder / name).is_file():
            said |= _json(folder / name)
    if not said:
        return Special()
    names = {}
    for role, keys in ROLES.items():
        tokens = [said[key] for key in keys if said.get(key)]
        first = tokens[0] if tokens else ""
        names[role] = first.get("content") if isinstance(first, dict) else first
    return Special(**names)


def _file(path: Path) -> File:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return File(sha256=digest, size_bytes=path.stat().st_size, filename=path.name)
