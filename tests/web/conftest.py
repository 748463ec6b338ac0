from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.cache import cache


@pytest.fixture(autouse=True)
def empty_cache():
    """Rate limits count from zero in every test."""
    cache.clear()


@pytest.fixture(scope="session")
def peer_key():
    """A public key in the form that a device sends."""
    key = generate_private_key(public_exponent=65537, key_size=2048).public_key()
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


@pytest.fixture
def files(db, tmp_path):
    """The site's files that a recipe is made of."""
    from webapp.artifacts.services import register_file

    def make(name, kind, **fields):
        path = tmp_path / name
        path.write_text(name)
        return register_file(path, kind, **fields)

    return {
        "tokenizer": make("tokenizer.json", "tokenizer", vocab_size=4096),
        "text": make("train.jsonl", "text", title="Leads", credit="Wikipedia, CC BY-SA 4.0"),
        "held_out": make("held.jsonl", "text", title="Held out"),
    }


@pytest.fixture
def text(db, tmp_path):
    """A text of the site, in several languages."""
    from tests.trainer.bengali import EVERYTHING
    from tests.web.makings import add_text

    return add_text(tmp_path, "poems.txt", "\n".join(EVERYTHING * 5))
