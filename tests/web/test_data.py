"""The page that shows an organiser ten batches of a collaboration, read as devices read."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from tests.factories import make_collaboration
from tests.trainer.test_data import TEXTS
from trainer.recipe import Choice, Text, Tokenizer
from trainer.text.tokenizer import train_tokenizer
from webapp.artifacts import look
from webapp.artifacts.models import Artifact
from webapp.artifacts.services import register_file
from webapp.artifacts.storage import absolute_path
from webapp.collaborations.chosen_texts import file_of

PAGE = "/console/c/demo/data/"


@pytest.fixture
def made(db, tmp_path, olga) -> Artifact:
    """A collaboration `demo` on a text of the site; that text."""
    train_tokenizer(TEXTS, tmp_path / "tokenizer.json", 300)
    tokenizer = register_file(tmp_path / "tokenizer.json", "tokenizer", vocab_size=300)
    (tmp_path / "text.txt").write_bytes("\n".join([*TEXTS, "<b>&amp;"]).encode() + b"\n\xff\n")
    text = register_file(tmp_path / "text.txt", "text", title="Greek")
    secret = tmp_path / "secret.txt"
    secret.write_text("of the site's own computer\n" * 50)
    make_collaboration(
        "demo",
        organiser=olga,
        family=Choice(name="albert"),
        tokenizer=Tokenizer(file=file_of(tokenizer), vocab_size=300),
        texts=(Text(kind="site", file=file_of(text)), Text(kind="local", path=str(secret))),
        sequence_length=32,
    )
    return text


def test_an_organiser_sees_ten_batches_and_what_was_counted(client, olga, made):
    client.force_login(olga)
    assert "Batch 1" not in client.get(PAGE).text
    page = client.post(PAGE)
    assert len(page.context["shown"]["batches"]) == 10
    words = page.text
    assert "Batch 10" in words and "[MASK]" in words and "→" in words
    assert (
        "The first broken one: byte" in words
        and "of text.txt" in words
        and "<b>&amp;</b>" not in words
    )
    assert "It lies on each device, not here." in words
    assert "own computer" not in words
    assert PAGE in client.get("/console/c/demo/").text


def test_only_organisers_look(client, alice, made):
    assert "/accounts/login/" in client.post(PAGE).url
    client.force_login(alice)
    assert client.get(PAGE).status_code == client.post(PAGE).status_code == 403


def test_what_cannot_be_shown_is_told_with_the_reason(client, olga, made, monkeypatch):
    client.force_login(olga)
    cache.add(look.TURN, True)
    assert "Another look at data is going on" in client.post(PAGE).text
    cache.delete(look.TURN)
    monkeypatch.setattr(look, "LONGEST_S", 0.01)
    assert "There was no answer within" in client.post(PAGE).text
    assert cache.get(look.TURN) is None
    absolute_path(made.path).unlink()
    assert "The site does not have text.txt any more" in client.post(PAGE).text
