"""A collaboration with a real checkpoint, and tasks for it."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
from django.utils import timezone

from tests.factories import make_collaboration
from tests.trainer.evaluated import make_model, write_tags
from tests.trainer.models import SHAPES
from trainer.engine.learner import Learner
from trainer.recipe import Choice, File, Tokenizer
from webapp.artifacts.models import Checkpoint, Kind
from webapp.artifacts.services import register_file
from webapp.collaborations.models import Collaboration
from webapp.evaluations import data, services
from webapp.evaluations.models import Evaluation, Task


def make_small(folder: Path) -> Collaboration:
    """Of the tiny ALBERT, with a tokenizer that is the site's."""
    tokenizer = make_model(folder / "model") / "tokenizer.json"
    size = len(json.loads(tokenizer.read_text())["model"]["vocab"])
    file = register_file(tokenizer, Kind.TOKENIZER, vocab_size=size)
    known = File(sha256=file.sha256, size_bytes=file.size_bytes, filename=file.filename)
    return make_collaboration(
        "small",
        family=Choice(name="albert", params=SHAPES["albert"]),
        tokenizer=Tokenizer(file=known, vocab_size=size),
        sequence_length=16,
    )


def add_checkpoint(collaboration: Collaboration, folder: Path, number: int) -> Checkpoint:
    """Its model as it begins, said to be of that round."""
    path = folder / f"checkpoint-{number:09d}.safetensors"
    learner = Learner(collaboration.recipe, 0)
    learner.round = number
    learner.save(path)
    file = register_file(path, Kind.CHECKPOINT)
    return Checkpoint.objects.create(collaboration=collaboration, artifact=file, round=number)


def add_task(collaboration: Collaboration, **fields) -> Task:
    """Tags, in the site's folder for such data."""
    data.folder().mkdir(parents=True, exist_ok=True)
    write_tags(data.folder() / "names.conll", fields.pop("rows", 30))
    values = {"title": "Names", "kind": "tags", "file": "names.conll", "epochs": 1} | fields
    return Task.objects.create(collaboration=collaboration, **values)


def claimed(task: Task) -> Evaluation:
    """One that a job has begun."""
    services.enter_due(timezone.now())
    found = services.claim(timezone.now())
    assert found is not None and found.task == task
    return found


def programs() -> list[psutil.Process]:
    """Evaluations that this process is still having done."""
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "evaluate" in one.cmdline()]
