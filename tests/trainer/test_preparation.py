"""What an agent makes of what the site has for it."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import pytest

from tests.answering import Answering
from tests.trainer.models import make_recipe
from trainer.agent.files import Files
from trainer.agent.join import Api, persist
from trainer.agent.preparation import Preparation
from trainer.agent.seat import Seat
from trainer.agent.wishes import Wishes
from trainer.grant import Checkpoint
from trainer.launcher.place import Unusable
from trainer.recipe import File, Text, Tokenizer

TEXT = b"potluck"
FILE = File(sha256=hashlib.sha256(TEXT).hexdigest(), size_bytes=len(TEXT), filename="f.txt")


class DamagedSite(Answering):
    """Its texts are right; its checkpoint has another content than announced."""

    def answer(self, method, path, body):
        return 200, b"something else" if path.endswith(".safetensors") else TEXT


def test_a15_a_newcomer_goes_without_a_checkpoint_that_is_damaged_on_the_site(tmp_path):
    recipe = make_recipe(
        tokenizer=Tokenizer(file=FILE, vocab_size=64), texts=(Text(kind="site", file=FILE),)
    )
    newest = Checkpoint(round=7, sha256="7" * 64, size_bytes=14, filename="c.safetensors")
    grant = SimpleNamespace(recipe=recipe, checkpoint=newest, authority="", bootstrap=())
    wishes, waits = Wishes(tmp_path / "wish.json"), []

    def persist_once(act):
        """As the agent does, but for the first wait, which is its last."""

        def waiting(words):
            waits.append(words)
            wishes.stop(words)

        return persist(act, wishes, waiting=waiting)

    site = DamagedSite().start()
    seat = Seat(site.url, "t" * 40, "demo", cache=tmp_path / "cache", folder=tmp_path / "me")
    outbox = SimpleNamespace(progress=lambda message: None)
    preparation = Preparation(seat, wishes, outbox, persist_once)
    job = preparation.make_job(grant, lambda: None, 0.0, Api(site.url))
    site.stop()
    assert waits == []
    assert site.shown == {f"/artifacts/{'7' * 64}/c.safetensors": f"Bearer {'t' * 40}"}
    assert job.checkpoint is None
    assert job.tokenizer.read_bytes() == TEXT


def test_a_disk_that_is_full_is_told_in_words(tmp_path):
    part = tmp_path / FILE.sha256 / "f.txt.part"
    part.parent.mkdir()
    part.symlink_to("/dev/full")
    site = DamagedSite().start()
    with pytest.raises(Unusable, match=r"The disk is full: .* Free some space and start again"):
        Files(site.url, tmp_path).fetch(FILE)
    site.stop()
