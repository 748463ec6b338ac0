"""Content-addressed files of the site: fetched once, checked before every use."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from trainer.grant import Checkpoint
from trainer.launcher import web
from trainer.launcher.place import Unusable, in_words
from trainer.recipe import Base, File, Recipe, Text

log = logging.getLogger(__name__)
Progress = Callable[[str, int, int], None]  # file name, bytes done, bytes in all
NUM_TRIES = 3
SHOWN_EVERY_S = 1.0


class Files:
    """Downloads into `folder/<sha256>/<filename>`; what is there and right stays.

    `own_texts` is where the volunteer has a text of kind `private`. Only the site sees `token`,
    which it asks for where a checkpoint is not everybody's.
    """

    def __init__(
        self,
        site: str,
        folder: Path,
        progress: Progress = lambda *_: None,
        own_texts: Path | None = None,
        token: str = "",
    ) -> None:
        self._site, self._own_texts, self._token = site, own_texts, token
        self._folder = folder
        self._progress = progress
        self._shown_at = 0.0

    def _show(self, name: str, done: int, total: int) -> None:
        """Now and then, and always the last byte."""
        if done >= total or time.monotonic() - self._shown_at > SHOWN_EVERY_S:
            self._shown_at = time.monotonic()
            self._progress(name, done, total)

    def fetch(self, file: File | Checkpoint) -> Path:
        """A local file whose content has the hash.

        Raises web.Unreachable (what came is kept for the next try), web.Refusal, web.Damaged
        (three times in a row) or Unusable (the disk, in words).
        """
        path = self._folder / file.sha256 / Path(file.filename).name
        try:
            return self._fetch(file, path, self._on_site(file), self._token)
        except OSError as error:
            raise Unusable(in_words(error, path)) from error

    def fetch_base(self, base: Base | None) -> Path | None:
        """A local folder with the files of a base and no others. Raises as `fetch`."""
        if base is None:
            return None
        folder = self._folder / base.sha256
        for file in base.files:
            path = folder / file.filename
            try:
                if base.kind == "local":
                    _link(file, Path(base.place) / file.filename, path)
                else:
                    self._fetch(file, path, self._address(base, file))
            except OSError as error:
                raise Unusable(in_words(error, path)) from error
        return folder

    def _on_site(self, file: File | Checkpoint) -> str:
        return f"{self._site}/artifacts/{file.sha256}/{quote(file.filename)}"

    def _address(self, base: Base, file: File) -> str:
        if base.kind == "site":
            return self._on_site(file)
        if base.kind == "http":
            return f"{base.place.rstrip('/')}/{quote(file.filename)}"
        from huggingface_hub import hf_hub_url

        name, _, revision = base.place.partition("@")
        return str(hf_hub_url(name, file.filename, revision=revision or None))

    def _fetch(self, file: File | Checkpoint, path: Path, url: str, token: str = "") -> Path:
        if path.exists():
            if web.sha256_of(path) == file.sha256:
                return path
            log.warning("%s is damaged on disk and is fetched again", path.name)
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        for tries_left in reversed(range(NUM_TRIES)):
            try:
                return web.download(
                    url,
                    path,
                    file.sha256,
                    token=token,
                    progress=lambda done, _: self._show(path.name, done, file.size_bytes),
                )
            except web.Damaged as error:
                log.warning("%s", error)
                if not tries_left:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    def fetch_text(self, text: Text | None) -> Path | None:
        """The local file of a text, or None where it is streamed from the web, or nobody's here."""
        if text is None or text.kind in ("http", "datasets"):
            return None
        if text.kind == "private":
            return self._own_texts
        return self.fetch(text.file) if text.file else Path(text.path)

    def fetch_recipe(self, recipe: Recipe) -> tuple[Path, tuple[Path | None, ...], Path | None]:
        """Tokenizer, texts in order, held-out text."""
        texts = tuple(self.fetch_text(text) for text in recipe.texts)
        return self.fetch(recipe.tokenizer.file), texts, self.fetch_text(recipe.held_out)

    def keep_only(self, sha256: str) -> None:
        """Deletes the other files of this folder: older checkpoints."""
        for folder in self._folder.glob("*/"):
            if folder.name != sha256:
                for path in folder.iterdir():
                    path.unlink(missing_ok=True)
                folder.rmdir()


def _link(file: File, there: Path, here: Path) -> None:
    """Raises Unusable where what is there is not the file."""
    if not there.is_file():
        raise Unusable(f"{there} is not on this computer, and the recipe's base is to be there.")
    if web.sha256_of(there) != file.sha256:
        raise Unusable(
            f"{there} is not what the recipe means: its SHA-256 is not {file.sha256}. Put the "
            "organiser's file there."
        )
    here.parent.mkdir(parents=True, exist_ok=True)
    here.unlink(missing_ok=True)
    here.symlink_to(there.resolve())
