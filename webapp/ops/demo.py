"""The demo: one small collaboration on real text, so that a fresh site has something to show."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from django.conf import settings
from django.db import transaction

from trainer.recipe import Choice, File, Finish, Optimizer, Recipe, Round, Text, Tokenizer
from webapp.accounts.models import User
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.services import register_file
from webapp.artifacts.storage import sha256_of
from webapp.collaborations import services
from webapp.collaborations.models import Collaboration
from webapp.ops import demo_text

SLUG = "demo"
VOCABULARY = 4096
TOKENIZER_DOCUMENTS = 2000
ROUNDS = 3000


def seed() -> Collaboration:
    """The demo collaboration, open; made on the first call. Takes seconds then."""
    existing = Collaboration.objects.filter(slug=SLUG).first()
    if existing is not None:
        return existing
    text = demo_text.find()
    with tempfile.TemporaryDirectory(dir=settings.DATA_DIR) as folder:
        train, held_out = Path(folder) / "train.jsonl", Path(folder) / "held-out.jsonl"
        demo_text.write((doc for doc in text.documents if not demo_text.is_held_out(doc)), train)
        demo_text.write((doc for doc in text.documents if demo_text.is_held_out(doc)), held_out)
        tokenizer = _tokenizer(train, text)
        return _create(
            text,
            tokenizer,
            _register(train, text, "training text"),
            _register(held_out, text, "held-out text"),
        )


def _register(path: Path, text: demo_text.DemoText, what: str) -> Artifact:
    return register_file(
        path,
        Kind.TEXT,
        title=f"Demo {what} ({text.name})",
        credit=text.credit,
        filename=f"{text.name}-{path.name}",
    )


def _tokenizer(train: Path, text: demo_text.DemoText) -> Artifact:
    """Trained once for each text and kept under the text's hash."""
    key = f"{sha256_of(train)[:16]}-{VOCABULARY}-{TOKENIZER_DOCUMENTS}"
    kept = settings.DATA_DIR / "cache" / f"tokenizer-{key}.json"
    size_file = kept.with_suffix(".size")
    if not size_file.exists():
        arguments = [str(train), str(kept), str(VOCABULARY), str(TOKENIZER_DOCUMENTS)]
        done = subprocess.run(
            [sys.executable, "-m", "webapp.ops.make_tokenizer", *arguments],
            cwd=settings.BASE_DIR,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        size_file.write_text(done.stdout)
    return register_file(
        kept,
        Kind.TOKENIZER,
        title=f"Demo tokenizer ({text.name})",
        credit=text.credit,
        vocab_size=int(size_file.read_text()),
        filename="tokenizer.json",
    )


@transaction.atomic
def _create(
    text: demo_text.DemoText, tokenizer: Artifact, train: Artifact, held_out: Artifact
) -> Collaboration:
    organiser = User.objects.filter(is_staff=True).order_by("pk").first()
    collaboration = services.create(
        title="A small model of English",
        summary="A tiny GPT that learns to write, trained from nothing by everybody who joins.",
        recipe=_recipe(text, tokenizer, train, held_out),
        by=organiser,
        text_credit=text.credit,
    )
    services.open_(collaboration, by=organiser)
    return collaboration


def _recipe(
    text: demo_text.DemoText, tokenizer: Artifact, train: Artifact, held_out: Artifact
) -> Recipe:
    """One million parameters: two weak cores finish a round in five to ten seconds."""
    return Recipe(
        collaboration=SLUG,
        family=Choice(name="causal", params={"hidden": 128, "layers": 3, "heads": 4, "length": 64}),
        strategy=Choice(name="dedloc"),
        tokenizer=Tokenizer(file=_file(tokenizer), vocab_size=tokenizer.vocab_size or VOCABULARY),
        texts=(Text(kind="site", file=_file(train), credit=text.credit),),
        held_out=Text(kind="site", file=_file(held_out), credit=text.credit),
        sequence_length=64,
        optimizer=Optimizer(learning_rate=1e-3, warmup_rounds=20, total_rounds=ROUNDS),
        round=Round(
            target_samples=128, deadline_s=30, matchmaking_s=2, averaging_s=20, checkpoint_every=10
        ),
        finish=Finish(rounds=ROUNDS),
    )


def _file(artifact: Artifact) -> File:
    return File(sha256=artifact.sha256, size_bytes=artifact.size_bytes, filename=artifact.filename)
