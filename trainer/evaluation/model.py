"""The model that is evaluated, as others load it: an exported folder, or a checkpoint exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from trainer.catalogue import create, family_of
from trainer.families._pretrained import LENGTHS
from trainer.launcher.web import sha256_of
from trainer.parts import Choice
from trainer.recipe import Recipe
from trainer.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from torch.nn import Module

LONGEST = 512
Kind = Literal["masked", "causal", "encoder-decoder"]
AUTO: dict[Kind, str] = {
    "masked": "AutoModelForMaskedLM",
    "causal": "AutoModelForCausalLM",
    "encoder-decoder": "AutoModelForSeq2SeqLM",
}
NOT_STORED = "pooler."  # what sits on top of a body, and is not used here


class Evaluated(NamedTuple):
    """`family` says what it was trained to guess; `length`: tokens that it reads at once."""

    folder: Path
    config: Any
    kind: Kind
    family: Any
    tokenizer: Tokenizer
    length: int

    def frame(self, ids: list[int]) -> list[int]:
        """With what stands around a text where the model was trained."""
        if self.kind == "causal":
            return ids
        start = [] if self.tokenizer.start is None else [self.tokenizer.start]
        return [*start, *ids, self.tokenizer.end]

    @property
    def room(self) -> int:
        """For ids in a frame."""
        return self.length - len(self.frame([]))

    def whole(self) -> Module:
        """With the head that it was trained with. Raises ValueError."""
        return _loaded(AUTO[self.kind], self.folder)

    def body(self) -> Module:
        """What reads a text, without a head. Raises ValueError."""
        model: Any = _loaded("AutoModel", self.folder)
        return model.get_encoder() if self.kind == "encoder-decoder" else model


@contextmanager
def opened(
    path: Path, tokenizer: Path | None, recipe: Recipe | None, base: Path | None
) -> Iterator[Evaluated]:
    """Of a folder that `export` or `save_pretrained` wrote, or of a checkpoint and its recipe.

    `base`: the folder with the recipe's. Raises ValueError, which says what is wrong, and OSError.
    """
    import transformers

    transformers.logging.set_verbosity_error()  # what is missing is looked for here
    transformers.logging.disable_progress_bar()
    if path.is_dir():
        yield _of_folder(path, tokenizer or path / "tokenizer.json", recipe)
        return
    if recipe is None or tokenizer is None:
        raise ValueError(f"{path} is no folder: a checkpoint needs --recipe and --tokenizer")
    if sha256_of(tokenizer) != recipe.tokenizer.file.sha256:
        raise ValueError(f"{tokenizer} is not the recipe's: its SHA-256 differs")
    from trainer.engine.export import export

    with TemporaryDirectory(prefix="evaluate-") as name:
        export(path, recipe, base, Tokenizer.of(recipe, tokenizer).pad, Path(name))
        yield _of_folder(Path(name), tokenizer, recipe)


def _of_folder(folder: Path, tokenizer: Path, recipe: Recipe | None) -> Evaluated:
    import transformers

    try:
        config: Any = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(f"{folder} holds no model: {str(error).splitlines()[0]}") from error
    special = recipe.base.special if recipe and recipe.base else None
    longest = next((n for key in LENGTHS if (n := getattr(config, key, None))), LONGEST)
    length = recipe.sequence_length if recipe else LONGEST
    kind, reader = _kind(folder, config), Tokenizer(tokenizer, config.vocab_size, special)
    family = family_of(recipe) if recipe else _family(kind, reader)
    return Evaluated(folder, config, kind, family, reader, min(length, longest))


def _family(kind: Kind, tokenizer: Tokenizer) -> Any:
    """Without a recipe: what such models are trained to as a rule, T5's kind by their sentinels."""
    name = "pretrained_masked" if kind == "masked" else "pretrained_causal"
    if kind == "encoder-decoder":
        name = "pretrained_spans" if tokenizer.has_sentinels else "pretrained_denoising"
    return create("families", Choice(name=name))


def _kind(folder: Path, config: Any) -> Kind:
    if config.is_encoder_decoder:
        return "encoder-decoder"
    (name, *_) = config.architectures or [""]
    if name.endswith(("ForMaskedLM", "ForPreTraining")):  # the latter tell orders, too
        return "masked"
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal"
    raise ValueError(
        f"{folder} holds {name or 'a model without a name'}: it is neither masked, causal, nor "
        "encoder and decoder"
    )


def _loaded(auto: str, folder: Path) -> Module:
    import torch
    import transformers

    from trainer.engine.model import place

    model, found = getattr(transformers, auto).from_pretrained(
        folder,
        dtype=torch.float32,
        use_safetensors=True,
        local_files_only=True,
        output_loading_info=True,
    )
    lacking = [name for name in found["missing_keys"] if not name.startswith(NOT_STORED)]
    if lacking or found["mismatched_keys"]:
        what = (sorted(lacking) or [str(key) for key in found["mismatched_keys"]])[0]
        raise ValueError(f"{folder} has no values for {what}")
    return model.to(place())  # type: ignore[no-any-return]
