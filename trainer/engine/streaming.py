"""A frozen base of which no more is held than what computes just now: the rest stays in its files.

Each layer's weights are mapped from their file when the layer is asked to compute, and let go when
it has: in the forward pass, and again in the backward one, where what a layer kept is computed anew
(`engine.recompute`, without which a pass would keep each layer's weights for its gradient). What is
outside of the layers, as word vectors and scores, comes and goes in the same way, part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn import Module, Parameter

from trainer.bases import header_of

IN_WORDS = (
    "this device's memory does not hold the model: each frozen layer is read from disk when it is "
    "needed, which takes longer"
)


class Place(NamedTuple):
    """Where the values of a weight are, a tensor of a safetensors file, and how they are held."""

    path: Path
    name: str
    dtype: torch.dtype


class Weight(NamedTuple):
    """The weight `name` of `part`, to be had from `place`."""

    place: Place
    part: Module
    name: str


def stream(
    model: Module,
    layers: Iterable[Module],
    folder: Path,
    device: torch.device,
    dtype: torch.dtype,
) -> None:
    """`model` is an outline (`Family.outline`) of the base in `folder`, which is held in `dtype`,
    with its adapter; `layers` are read as wholes. What trains, and buffers, are filled in for good.

    Raises ValueError where the files lack a weight, or call it otherwise.
    """
    places = _places(model, folder, dtype)
    _fill(model, places, device)
    whole = list(layers)
    within = {id(part) for layer in whole for part in layer.modules()}
    for layer in whole:
        _read_for(layer, layer.modules(), places)
    for part in model.modules():
        if id(part) not in within:
            _read_for(part, [part], places)


def _places(model: Module, folder: Path, dtype: torch.dtype) -> dict[Tensor, Place]:
    """Of all parameters and buffers that are in the files."""
    known = {
        name: (Place(path, name, dtype), tensor["shape"])
        for path in sorted(folder.glob("*.safetensors"))
        for name, tensor in header_of(path)[0].items()
    }
    prefix = f"{getattr(model, 'base_model_prefix', '')}."  # which some files leave out
    found: dict[Tensor, Place] = {}
    for kind in (model.named_parameters, model.named_buffers):
        for name, tensor in kind(remove_duplicate=False):
            plain = name.replace(".base_layer.", ".")  # PEFT has put a matrix of its own around it
            place, shape = known.get(plain) or known.get(plain.removeprefix(prefix)) or (None, [])
            if place is not None and list(tensor.shape) == shape:
                found[tensor] = place
    return found


def _fill(model: Module, places: dict[Tensor, Place], device: torch.device) -> None:
    with torch.no_grad():
        for name, param in model.named_parameters():
            is_empty = not any(param.stride()) and param.numel() > 1
            if param in places and param.requires_grad:
                param.data = _read(places[param], device).to(param.dtype).clone()
            elif param in places:
                param.data = torch.zeros((), dtype=param.dtype, device=device).expand(param.shape)
            elif is_empty:
                raise ValueError(
                    f"the base's files have no {name}, so it cannot be read while it trains: save "
                    "the base anew with transformers' save_pretrained"
                )
        for buffer in model.buffers():
            if buffer in places:
                buffer.copy_(_read(places[buffer], device))


def _read_for(part: Module, parts: Iterable[Module], places: dict[Tensor, Place]) -> None:
    """Has `part` read the frozen weights of `parts` whenever it computes."""
    found = [
        Weight(places[param], one, name)
        for one in parts
        for name, param in one.named_parameters(recurse=False)
        if param in places and not param.requires_grad
    ]
    if found:
        by_file = sorted(found, key=lambda weight: weight.place[:2])
        part.forward = partial(_compute_with, part.forward, by_file)


def _compute_with(
    forward: Callable[..., Any], weights: Sequence[Weight], *args: Any, **kwargs: Any
) -> Any:
    """What comes of `forward` keeps the weights only as long as a gradient needs them."""
    outlines = [weight.part._parameters[weight.name] for weight in weights]
    try:
        _put(weights)
        return forward(*args, **kwargs)
    finally:
        for weight, outline in zip(weights, outlines, strict=True):
            weight.part._parameters[weight.name] = outline


def _put(weights: Sequence[Weight]) -> None:
    for path, of_file in groupby(weights, key=lambda weight: weight.place.path):
        known: dict[str, Parameter] = {}
        with safe_open(path, "pt") as file:
            for (_, name, dtype), part, own in of_file:
                outline = part._parameters[own]
                assert outline is not None, "it has a place, so it is a parameter"
                if name not in known:
                    values = file.get_tensor(name).to(outline.device, dtype)
                    known[name] = Parameter(values.to(outline.dtype), requires_grad=False)
                part._parameters[own] = known[name]


def _read(place: Place, device: torch.device) -> Tensor:
    with safe_open(place.path, "pt") as file:
        values: Tensor = file.get_tensor(place.name)
        return values.to(device, place.dtype)
