"""Which weights of a base are whose layer's, and which come after the last one: by their names.

Names are all that is known of a base without loading it, and what is made of them here is held
against the model before it is used (`adapters/top_layers.py`).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from trainer.parts import Stack

LAYER = re.compile(r"^(.+?)\.(\d+)\.")  # what comes before the first number of a name, and that
DECODER = "decoder"
# How a config says how many layers there are, of a decoder first.
DEPTHS = ("num_decoder_layers", "decoder_layers", "num_hidden_layers", "n_layer", "num_layers")
# Outside of layers: what words and places are looked up in, with what follows at once, and what is
# there for other tasks. These and an encoder's lead to the layers, or nowhere.
NOT_AFTER = re.compile(
    r"embed|\bwte\b|\bwpe\b|\bshared\b|rotary|project_in|pooler|seq_relationship|final_logits_bias"
)
Shapes = Sequence[tuple[str, list[int]]]


def stack_of(shapes: Shapes, config: dict[str, Any]) -> Stack | None:
    """Of an encoder and decoder the decoder's. None where a number stands for no layer of its own,
    as in ALBERT, which uses one many times.
    """
    values = {name: math.prod(shape) for name, shape in shapes if not _is_mask(shape)}
    sizes: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for name, number in values.items():
        if found := LAYER.match(name):
            sizes[found[1]][int(found[2])] += number
    decoders = [place for place in sizes if DECODER in place]
    places = decoders or list(sizes)
    if len(places) != 1:
        return None
    layers = sizes[places[0]]
    depth = next((config[key] for key in DEPTHS if config.get(key)), None)
    if depth != len(layers) or sorted(layers) != list(range(depth)):
        return None
    tied = config.get("vocab_size") if config.get("tie_word_embeddings") else None
    scores = {name for name, shape in shapes if len(shape) == 2 and shape[0] == tied}
    after = sorted(
        name
        for name in values.keys() - scores
        if not LAYER.match(name)
        and not NOT_AFTER.search(name)
        and not (decoders and "encoder" in name)
    )
    return Stack(
        place=places[0],
        layers=tuple(layers[number] for number in range(depth)),
        after=tuple(after),
        after_values=sum(values[name] for name in after),
    )


def layer_of(path: str, stack: Stack) -> int | None:
    """The number of the layer that a model's weight of this name is in; None: in none of these.

    A model's names may begin with more than the files' do.
    """
    found = re.search(rf"(?:^|\.){re.escape(stack.place)}\.(\d+)\.", path)
    return int(found[1]) if found else None


def is_after(path: str, stack: Stack) -> bool:
    """Whether a model's weight of this name comes after the layers."""
    return layer_of(path, stack) is None and any(
        f".{path}".endswith(f".{name}") for name in stack.after
    )


def _is_mask(shape: list[int]) -> bool:
    """Files of GPT-2 hold its attention's masks, 1 x 1 x length x length, and a number for them."""
    return not shape or shape[:2] == [1, 1]
