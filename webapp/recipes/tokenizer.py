"""The tokenizer of a ready recipe: made here, or fetched from a hub."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from webapp.accounts.models import User
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.services import register_file
from webapp.artifacts.storage import absolute_path
from webapp.artifacts.tokens import tokens_in
from webapp.core.errors import UserError
from webapp.core.jobs import State
from webapp.recipes import hub
from webapp.recipes.ready import Pairs, Published, Ready, Unigram
from webapp.tokenizers import services
from webapp.tokenizers.models import Making
from webapp.tokenizers.program import do

LOOK_EVERY_S = 0.5


def find(
    ready: Ready,
    texts: list[Artifact],
    folder: Path,
    *,
    by: User,
    tell: Callable[[str], None],
    stopping: threading.Event,
) -> Artifact:
    """Raises UserError when there is none to be had, with the reason."""
    wanted = ready.tokenizer
    title = f"{ready.title}: tokenizer"
    if isinstance(wanted, Published):
        return _fetched(wanted, folder / "tokenizer.json", title)
    if not texts:
        raise UserError(
            f"{ready.title} has no text on this site that a tokenizer could be made of.",
            "Give the recipe one of a hub.",
        )
    if isinstance(wanted, Pairs):
        return _paired(wanted, texts[0], title)
    if (known := _known(wanted, texts)) is not None:
        return known
    tell(f"Making a tokenizer of {wanted.size:,} tokens, which may take minutes.")
    return _made_by_job(wanted, texts, title, by, stopping)


def may_be(vocab_size: int, wanted: Pairs | Unigram | Published) -> bool:
    """Whether one of so many tokens was made as is wanted: out of a short text come fewer."""
    if isinstance(wanted, Published):
        return vocab_size == wanted.size
    return vocab_size <= wanted.size


def _fetched(wanted: Published, path: Path, title: str) -> Artifact:
    hub.fetch_tokenizer(wanted.name, wanted.revision, path)
    try:
        size = tokens_in(path)
    except ValueError as error:
        raise UserError(f"What the hub has of {wanted.name} cannot be used: {error}.") from error
    if size > wanted.size:
        raise UserError(
            f"The tokenizer of {wanted.name} has {size:,} tokens, and the recipe says "
            f"{wanted.size:,}.",
            "Change the recipe's file.",
        )
    return register_file(path, Kind.TOKENIZER, title=title, credit=wanted.credit, vocab_size=size)


def _paired(wanted: Pairs, text: Artifact, title: str) -> Artifact:
    """Trained once for each text and kept under the text's hash."""
    key = f"{text.sha256[:16]}-{wanted.size}-{wanted.documents}"
    kept = settings.DATA_DIR / "cache" / f"tokenizer-{key}.json"
    size_file = kept.with_suffix(".size")
    if not size_file.exists():
        source = absolute_path(text.path)
        arguments = [str(source), str(kept), str(wanted.size), str(wanted.documents)]
        done = subprocess.run(
            [sys.executable, "-m", "webapp.recipes.make_tokenizer", *arguments],
            cwd=settings.BASE_DIR,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        size_file.write_text(done.stdout)
    return register_file(
        kept,
        Kind.TOKENIZER,
        title=title,
        credit=text.credit,
        vocab_size=int(size_file.read_text()),
        filename="tokenizer.json",
    )


def _made_by_job(
    wanted: Unigram, texts: list[Artifact], title: str, by: User, stopping: threading.Event
) -> Artifact:
    """By a worker of the site, or here where none takes it."""
    making = services.start(wanted.wanted(), texts, title=title, by=by)
    while not making.is_over:
        services.give_up_silent(timezone.now())
        if claimed := services.claim(timezone.now()):
            do(claimed, stopping)
        elif stopping.wait(LOOK_EVERY_S):
            raise UserError("The site was stopped before there was a tokenizer.", "Start it again.")
        making.refresh_from_db()
    if making.artifact is None:
        raise UserError(f"There is no tokenizer: its making {making.state}. {making.reason}")
    return making.artifact


def _known(wanted: Unigram, texts: list[Artifact]) -> Artifact | None:
    """That which was made of the same texts before."""
    plan = wanted.wanted().model_dump(mode="json")
    done = Making.objects.filter(state=State.FINISHED, plan=plan, artifact__isnull=False)
    for making in done.select_related("artifact"):
        if set(making.texts.all()) == set(texts):
            return making.artifact
    return None
