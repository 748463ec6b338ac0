"""The texts of a ready recipe as a recipe names them; packages' become files of the site."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainer.recipe import File, Text
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.services import register_file
from webapp.core.errors import UserError
from webapp.recipes import corpora, hub
from webapp.recipes.corpora.base import Corpus, is_held_out, write
from webapp.recipes.ready import PackageText, Ready

TRAINING, HELD_OUT = "training text", "held-out text"


@dataclass(frozen=True)
class Texts:
    """`files`: those of the site among `texts`, which a tokenizer can be made of. What is held out
    is of the first text that comes from a package; None where none does."""

    texts: tuple[Text, ...]
    files: list[Artifact]
    held_out: Artifact | None

    @property
    def held_out_text(self) -> Text | None:
        return _as_text(self.held_out) if self.held_out else None


def find(ready: Ready, folder: Path) -> Texts:
    """Writes into `folder` on its way. Raises UserError: a package is missing, or a hub."""
    texts, files, held_out = [], [], None
    for text in ready.texts:
        if isinstance(text, PackageText):
            corpus = _corpus(text.name)
            file = _register(corpus, folder, TRAINING, lambda one: not is_held_out(one))
            held_out = held_out or _register(corpus, folder, HELD_OUT, is_held_out)
            files.append(file)
            texts.append(_as_text(file, text.weight))
        else:
            if text.dataset is not None:
                hub.require_files(text.dataset)
            texts.append(text)
    return Texts(tuple(texts), files, held_out)


def file_of(artifact: Artifact) -> File:
    return File(sha256=artifact.sha256, size_bytes=artifact.size_bytes, filename=artifact.filename)


def is_made_of(text: Text, said: PackageText | Text) -> bool:
    """Whether a recipe's `text` is what a ready recipe says, whatever is told of whose it is.

    Raises UserError where the package is missing.
    """
    if isinstance(said, PackageText):
        named = text.file.filename if text.file else ""
        return (named, text.weight) == (_filename(_corpus(said.name).name, TRAINING), said.weight)
    return text.model_dump(exclude={"credit"}) == said.model_dump(exclude={"credit"})


def _filename(name: str, what: str) -> str:
    return f"{name}-{what.split()[0]}.jsonl"


def _as_text(artifact: Artifact, weight: float = 1.0) -> Text:
    return Text(kind="site", file=file_of(artifact), credit=artifact.credit, weight=weight)


def _corpus(name: str) -> Corpus:
    known = corpora.texts()
    if name not in known:
        raise UserError(f"No package has a text called {name!r}.", f"There are {', '.join(known)}.")
    return known[name]()


def _register(corpus: Corpus, folder: Path, what: str, belongs: Callable[[str], bool]) -> Artifact:
    path = folder / _filename(corpus.name, what)
    write(filter(belongs, corpus.documents), path)
    return register_file(path, Kind.TEXT, title=f"{corpus.name}: {what}", credit=corpus.credit)
