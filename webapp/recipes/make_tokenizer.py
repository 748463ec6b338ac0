"""`python -m webapp.recipes.make_tokenizer TEXT OUT VOCABULARY DOCUMENTS`: a process of its own.

Training takes both cores and memory for a moment; neither belongs into a process that lives on.
Prints the number of tokens made.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

from trainer.text.tokenizer import train_tokenizer


def main(text: str, out: str, vocab_size: str, num_documents: str) -> None:
    with Path(text).open(encoding="utf-8") as file:
        lines = itertools.islice(file, int(num_documents))
        texts = (json.loads(line)["text"] for line in lines)
        size = train_tokenizer(texts, Path(out), int(vocab_size))
    print(size)


if __name__ == "__main__":
    main(*sys.argv[1:])
