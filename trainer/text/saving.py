"""The tokenizer beside a model that others load: what `AutoTokenizer` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer import catalogue
from trainer.parts import Special
from trainer.recipe import Recipe
from trainer.text.roles import special_of
from trainer.text.tokenizer import TokenizerError


def save_tokenizer(recipe: Recipe, path: Path, folder: Path) -> None:
    """Writes the recipe's tokenizer, the file at `path`, into `folder`, its special tokens by what
    they are for. Raises TokenizerError.
    """
    from tokenizers import Tokenizer as Encoder
    from transformers import PreTrainedTokenizerFast

    try:
        encoder = Encoder.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise TokenizerError(f"{path.name} is not a tokenizer: {error}") from error
    special = recipe.base.special if recipe.base else special_of(encoder)
    roles = _roles(special, catalogue.family_of(recipe).objective.kind == "masked")
    made: Any = PreTrainedTokenizerFast(
        tokenizer_object=encoder, model_max_length=recipe.sequence_length, **roles
    )
    made.save_pretrained(folder)


def _roles(special: Special, is_masked: bool) -> dict[str, str]:
    """As transformers calls them: what a masked model has around a text is no end of one."""
    named = {"pad_token": special.pad, "unk_token": special.unknown}
    if is_masked:
        named |= {"cls_token": special.start, "sep_token": special.end, "mask_token": special.mask}
    else:
        named |= {"bos_token": special.start, "eos_token": special.end}
    return {role: token for role, token in named.items() if token}
