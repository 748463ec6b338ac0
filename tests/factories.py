"""Plain functions that make what tests need; everything has a sane default."""

from __future__ import annotations

import hashlib
import itertools
import uuid

from trainer.recipe import Choice, File, Recipe, Round, Text, Tokenizer
from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration, Revision, State
from webapp.core.tokens import hashed, new_token
from webapp.devices.models import Device, Session

_number = itertools.count(1)


def make_user(name: str = "", **fields: object) -> User:
    name = name or f"person-{next(_number)}"
    return User.objects.create_user(
        f"{name}@example.org", "right horse battery", name=name, **fields
    )


def make_file(content: bytes = b"{}", filename: str = "file.json") -> File:
    return File(
        sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content), filename=filename
    )


def make_recipe(slug: str = "demo", **fields: object) -> Recipe:
    values: dict[str, object] = {
        "collaboration": slug,
        "family": Choice(name="albert"),
        "strategy": Choice(name="dedloc"),
        "tokenizer": Tokenizer(file=make_file(filename="tokenizer.json"), vocab_size=4096),
        "texts": (Text(kind="site", file=make_file(b"text\n", "train.jsonl")),),
        "round": Round(target_samples=64),
    }
    return Recipe(**(values | fields))


def make_collaboration(
    slug: str = "", *, state: str = State.OPEN, organiser: User | None = None, **recipe: object
) -> Collaboration:
    slug = slug or f"collaboration-{next(_number)}"
    collaboration = Collaboration.objects.create(
        slug=slug, title=slug.replace("-", " ").capitalize(), state=state, organiser=organiser
    )
    made = make_recipe(slug, **recipe)
    Revision.objects.create(
        collaboration=collaboration, number=1, recipe_json=made.canonical(), sha256=made.sha256()
    )
    return collaboration


def make_device(owner: User, name: str = "lab-pc") -> tuple[Device, str]:
    """The device and its token in clear."""
    token = new_token()
    return Device.objects.create(owner=owner, name=name, token_hash=hashed(token)), token


def make_session(device: Device, collaboration: Collaboration, **fields: object) -> Session:
    return Session.objects.create(
        id=uuid.uuid4(), device=device, collaboration=collaboration, **fields
    )
