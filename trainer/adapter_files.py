"""A checkpoint's adapter as PEFT loads it: `adapter_config.json` and `adapter_model.safetensors`.

Made from the bytes of the file, without torch, so that the site can do it. Nothing is put to the
names that others do not expect there: what a model does not know it passes over in silence.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainer.bases import header_of
from trainer.catalogue import adapter_of, family_of
from trainer.recipe import Recipe

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIXES = ("model.", "frozen.")  # of a checkpoint's tensors; others are the optimizer's
THEIRS = "base_model.model."


def adapter_files(checkpoint: Path, recipe: Recipe) -> dict[str, bytes]:
    """{name: content}. Raises ValueError where the recipe has no adapter or PEFT has none of its
    kind, and OSError.
    """
    adapter = adapter_of(recipe)
    if adapter is None or recipe.base is None:
        raise ValueError(f"{recipe.collaboration} trains no adapter: its checkpoints are models")
    if not adapter.in_peft:
        raise ValueError(f"PEFT knows no files for {adapter.trains}: export the model")
    header: dict[str, Any] = {}
    content = bytearray()
    for name, tensor, data in _tensors(checkpoint):
        place = [len(content), len(content) + len(data)]
        header[THEIRS + name.replace(".default.", ".")] = {**tensor, "data_offsets": place}
        content += data
    paths = sorted({name.removeprefix(THEIRS).split(".lora_")[0] for name in header})
    config = adapter.peft_config(recipe.base, paths) | {
        "base_model_name_or_path": recipe.base.place.partition("@")[0],
        "task_type": family_of(recipe).task,
    }
    head = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    head += b" " * (-len(head) % 8)
    weights = struct.pack("<Q", len(head)) + head + bytes(content)
    return {CONFIG: json.dumps(config, indent=1).encode(), WEIGHTS: weights}


def _tensors(checkpoint: Path) -> Iterator[tuple[str, dict[str, Any], bytes]]:
    """Name in the model, type and shape, and content of what belongs to the adapter."""
    header, start = header_of(checkpoint)
    with checkpoint.open("rb") as file:
        for name, tensor in sorted(header.items()):
            if not name.startswith(PREFIXES):
                continue
            first, end = tensor["data_offsets"]
            file.seek(start + first)
            about = {"dtype": tensor["dtype"], "shape": tensor["shape"]}
            yield name.split(".", 1)[1], about, file.read(end - first)


def adapter_zip(checkpoint: Path, recipe: Recipe) -> bytes:
    """Both in one file; the same checkpoint makes the same one. Raises as `adapter_files`."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in adapter_files(checkpoint, recipe).items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()
