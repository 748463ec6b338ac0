"""What a device holds of the texts, on its disk: so that it goes on exactly there after a kill."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from trainer.agent.holding import Holding, Saved
from trainer.wire import Message

FILENAME = "reading.json"
log = logging.getLogger(__name__)


class Kept(Message):
    recipe: str
    texts: tuple[Saved, ...]


class Ledger:
    """`path` None: nothing is kept."""

    def __init__(self, path: Path | None, recipe_sha256: str) -> None:
        self._path, self._sha256 = path, recipe_sha256

    def read(self, num_texts: int) -> list[Holding]:
        """Of every text; empty where nothing fits: it belongs to another recipe, or is damaged."""
        try:
            content = self._path.read_text(encoding="utf-8") if self._path else ""
            kept = Kept.model_validate_json(content) if content else None
            if kept and kept.recipe == self._sha256 and len(kept.texts) == num_texts:
                return [Holding.restored(one) for one in kept.texts]
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            log.warning("What this device held of the texts is not known any more: %s", error)
        return [Holding() for _ in range(num_texts)]

    def write(self, holdings: Sequence[Holding]) -> None:
        """All of it or nothing. A full disk costs that, and not the training."""
        if self._path is None:
            return
        kept = Kept(recipe=self._sha256, texts=tuple(one.saved() for one in holdings))
        part = self._path.with_suffix(".part")
        try:
            part.write_text(kept.model_dump_json(), encoding="utf-8")
            part.replace(self._path)
        except OSError as error:
            log.warning("What this device holds of the texts could not be written: %s", error)
