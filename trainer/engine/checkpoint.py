"""Checkpoints: parameters, optimizer moments and the round, in one safetensors file.

Tied weights are stored once: the file holds parameters, and a model's parameters name each tensor
once. A file carries a digest of its own tensors, so that a single wrong byte is noticed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

FORMAT = "1"
KEPT = 3
MODEL = "model."  # before names of parameters
KEPT_AS_IT_IS = "frozen."  # before names of what belongs to the model and does not train
_name = re.compile(r"^checkpoint-(\d{9})\.safetensors$")
log = logging.getLogger(__name__)


class BadCheckpoint(ValueError):
    """Names the file and what is wrong with it."""


def filename(round_number: int) -> str:
    return f"checkpoint-{round_number:09d}.safetensors"


def write(path: Path, tensors: Mapping[str, Tensor], round_number: int, recipe: str) -> None:
    """Complete under its final name, or not there at all. Raises OSError."""
    metadata = {
        "format": FORMAT,
        "round": str(round_number),
        "recipe": recipe,
        "digest": _digest(tensors),
    }
    draft = path.with_name(f".{path.name}.new")
    try:
        with draft.open("wb") as file:
            file.write(save({n: t.contiguous() for n, t in tensors.items()}, metadata))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(
    path: Path, shapes: Mapping[str, tuple[int, ...]], recipe: str
) -> tuple[int, dict[str, Tensor]]:
    """The round and the tensors. Raises BadCheckpoint unless every one of `shapes` is there, and no
    others but those kept as they are.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        round_number = int(metadata["round"])
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise BadCheckpoint(f"{path.name} cannot be read: {error}") from error
    if metadata.get("format") != FORMAT or metadata.get("recipe") != recipe:
        raise BadCheckpoint(f"{path.name} belongs to another recipe")
    if metadata.get("digest") != _digest(tensors):
        raise BadCheckpoint(f"{path.name} is damaged: its tensors do not match its digest")
    found = {n: tuple(t.shape) for n, t in tensors.items() if not n.startswith(KEPT_AS_IT_IS)}
    if found != dict(shapes):
        raise BadCheckpoint(f"{path.name} holds another model")
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        raise BadCheckpoint(f"{path.name} holds values that are not finite")
    return round_number, tensors


def fill(path: Path, params: Mapping[str, Tensor], recipe: str) -> None:
    """Copies a model's parameters out of a file whose hash is known to be right, one at a time: of
    what else is in it nothing is read.

    Raises BadCheckpoint unless it is of `recipe` and has all of `params`.
    """
    try:
        with safe_open(path, framework="pt") as file, torch.no_grad():
            if (file.metadata() or {}).get("recipe") != recipe:
                raise BadCheckpoint(f"{path.name} belongs to another recipe")
            for name, param in params.items():
                param.copy_(file.get_tensor(f"{MODEL}{name}"))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise BadCheckpoint(f"{path.name} cannot be read: {error}") from error


def newest_first(folder: Path) -> Iterator[Path]:
    """Complete files by round, the newest first."""
    found = [path for path in folder.glob("checkpoint-*.safetensors") if _name.match(path.name)]
    return iter(sorted(found, reverse=True))


def prune(folder: Path, kept: int = KEPT) -> None:
    for path in list(newest_first(folder))[kept:]:
        path.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()
