"""What families that begin with a base have in common: its sizes, and how it is loaded."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trainer.families import base

if TYPE_CHECKING:
    from torch.nn import Module

    from trainer.parts import Precision

OWN_FILES = {"local_files_only": True, "trust_remote_code": False}
LENGTHS = ("max_position_embeddings", "n_positions")
# What a layer keeps, in values that go in and out of its matrices. Measured with LoRA: 1.0 in LLaMA
# and BERT, 0.8 in T5, 1.8 in GPT-2, whose GELU goes in steps; a layer used many times counts once.
ACTIVATIONS = 1.2
log = logging.getLogger(__name__)


class Pretrained(base.Family):
    """`auto` is the class of transformers that makes a model of this kind from its config."""

    is_pretrained = True
    auto: ClassVar[str]

    def parameter_count(self, vocab_size: int) -> int:
        return self._base().parameters

    def activation_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        """About; a layer's matrices tell its widths."""
        widths = sum(m.count * (m.inputs + m.outputs) for m in self._base().matrices)
        return (
            round(ACTIVATIONS * self.reached * tokens * widths)
            + self.scored(tokens, targets) * vocab_size
        )

    def recomputed_values(self, vocab_size: int, tokens: int, targets: int) -> int:
        """About; where nobody knows how many layers there are, as if none were computed again."""
        base, scores = self._base(), self.scored(tokens, targets) * vocab_size
        if base.stack is None or not base.matrices:
            return self.activation_values(vocab_size, tokens, targets)
        depth, width = len(base.stack.layers), min(matrix.inputs for matrix in base.matrices)
        widths = sum(m.count * (m.inputs + m.outputs) for m in base.matrices)
        return round(tokens * (depth * width + ACTIVATIONS * widths / depth)) + scores

    def scored(self, tokens: int, targets: int) -> int:
        """Places for which a pass computes the scores of all words."""
        return tokens

    def _base(self) -> base.Base:
        if self.base is None:
            raise ValueError(f"{self.label} begins with a base, and the recipe names none")
        return self.base

    def load(self, folder: Path, vocab_size: int, sequence_length: int) -> Module:
        """Only from the files in `folder`, none of which is run.

        transformers gives random values to what the files do not have, and only says so in a log:
        here that is an error, since each device would freeze others.
        """
        import transformers

        _hush()
        held = _held(self._base().precision)
        try:
            model, found = getattr(transformers, self.auto).from_pretrained(
                folder, **held, use_safetensors=True, output_loading_info=True, **OWN_FILES
            )
        except (OSError, KeyError, ValueError) as error:
            raise self._no_such_base(error) from error
        lacking = sorted(found["missing_keys"]) + [str(key) for key in found["mismatched_keys"]]
        if lacking:
            raise ValueError(
                f"the base has no values for {lacking[0]} ({len(lacking)} in all): it is not of "
                f"the kind {self.label}, choose another family"
            )
        if found["unexpected_keys"]:
            log.info("not used of the base: %s", ", ".join(sorted(found["unexpected_keys"])))
        return self._checked(model, vocab_size, sequence_length)

    def outline(self, folder: Path, vocab_size: int, sequence_length: int) -> Module:
        import torch
        import transformers
        from accelerate import init_empty_weights

        _hush()
        dtype = _held(self._base().precision)["dtype"]
        try:
            config = transformers.AutoConfig.from_pretrained(folder, **OWN_FILES)
            with init_empty_weights(include_buffers=False):
                model = getattr(transformers, self.auto).from_config(config, dtype=dtype)
        except (OSError, KeyError, ValueError) as error:
            raise self._no_such_base(error) from error
        model.tie_weights()
        empty: dict[torch.nn.Parameter, torch.nn.Parameter] = {}
        for part in model.modules():
            for name, param in part.named_parameters(recurse=False):
                one_for_all = torch.zeros((), dtype=dtype).expand(param.shape)
                part._parameters[name] = empty.setdefault(param, torch.nn.Parameter(one_for_all))
        return self._checked(model, vocab_size, sequence_length)

    def _no_such_base(self, error: Exception) -> ValueError:
        why = str(error).splitlines()[0]
        return ValueError(f"the base cannot be loaded as {self.label}: {why}")

    def _checked(self, model: Any, vocab_size: int, sequence_length: int) -> Module:
        self._require_length(model.config, sequence_length)
        words = model.get_input_embeddings().weight.shape[0]
        if words < vocab_size:
            raise ValueError(
                f"the tokenizer has {vocab_size} tokens and the base knows {words}: choose the "
                "tokenizer that the base was trained with"
            )
        model.config.use_cache = False
        return model  # type: ignore[no-any-return]

    def _require_length(self, config: Any, sequence_length: int) -> None:
        longest = next((n for key in LENGTHS if (n := getattr(config, key, None))), None)
        if longest:
            base.require_length(longest, sequence_length)


def _hush() -> None:
    """The words and bars of transformers would cut up the screen."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def _held(precision: Precision) -> dict[str, Any]:
    """Options of transformers. Raises ValueError where the device lacks what these need."""
    import torch

    if precision in ("fp32", "bf16"):
        return {"dtype": torch.bfloat16 if precision == "bf16" else torch.float32}
    if find_spec("bitsandbytes") is None:
        raise ValueError(
            f"this collaboration holds its base in {precision}, for which this device lacks the "
            "library bitsandbytes: install it into the agent's Python environment, or choose a "
            "collaboration that does without"
        )
    from transformers import BitsAndBytesConfig

    # Dettmers et al. 2022 (LLM.int8) and 2023 (QLoRA); what a pass computes stays float32.
    four = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
    bits = {"load_in_8bit": True} if precision == "int8" else {"load_in_4bit": True, **four}
    return {
        "dtype": torch.float32,
        "quantization_config": BitsAndBytesConfig(**bits, bnb_4bit_compute_dtype=torch.float32),
        "device_map": {"": "cuda" if torch.cuda.is_available() else "cpu"},
    }
