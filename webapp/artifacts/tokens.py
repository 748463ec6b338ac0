"""How many tokens a tokenizer.json has."""

from __future__ import annotations

from pathlib import Path


def tokens_in(file: Path) -> int:
    """Raises OSError, and ValueError where it is no tokenizer."""
    from tokenizers import Tokenizer

    content = file.read_text(encoding="utf-8")
    try:
        return int(Tokenizer.from_str(content).get_vocab_size())
    except Exception as error:  # the library raises plain Exception
        raise ValueError(f"it is no tokenizer.json: {error}") from error
