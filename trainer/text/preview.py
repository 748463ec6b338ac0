"""What a tokenizer makes of a text, for people to look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.text.spans import spans
from trainer.text.tokenizer import TokenizerError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Encoder


def preview(path: Path, text: str) -> dict[str, Any]:
    """Normal form, and the pieces with their ids and places in `text`, in characters.

    `special` pieces are put around the text; `unknown` ones stand for what the tokenizer does not
    know. Shares and characters are of the others. Raises TokenizerError.
    """
    from tokenizers import Tokenizer as Encoder

    try:
        encoder = Encoder.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise TokenizerError(f"{path.name} is not a tokenizer: {error}") from error
    try:
        found = encoder.encode(text)
    except Exception as error:
        raise TokenizerError(f"{path.name} cannot cut this: {error}") from error
    unknown = _unknown_id(encoder)
    tokens = [
        {
            "piece": piece,
            "id": number,
            "text": text[start:end],
            "start": start,
            "end": end,
            "special": bool(special),
            "unknown": number == unknown,
        }
        for piece, number, (start, end), special in zip(
            found.tokens, found.ids, spans(text, found), found.special_tokens_mask, strict=True
        )
    ]
    inner = [token for token in tokens if not token["special"]]
    count = max(1, len(inner))
    return {
        "normal": encoder.normalizer.normalize_str(text) if encoder.normalizer else text,
        "tokens": tokens,
        "num_tokens": len(inner),
        "unknown_share": sum(bool(token["unknown"]) for token in inner) / count,
        "characters_per_token": len(text) / count,
    }


def _unknown_id(encoder: Encoder) -> int | None:
    """None where it knows every byte, as many do."""
    model = json.loads(encoder.to_str())["model"]
    token = model.get("unk_token")
    return model.get("unk_id") if token is None else encoder.token_to_id(token)
