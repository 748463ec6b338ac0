"""A device that is killed again and again in the middle of rounds, with a real site."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import make_collaboration, make_device, make_user
from tests.trainer.test_resume import ELSEWHERE, LENGTH, ROWS, tokenizer  # noqa: F401 - a fixture
from trainer.recipe import Choice
from webapp.shards import services
from webapp.shards.models import Shard

ROUNDS = 2  # of each life
CAUSAL = Choice(name="causal", params={"hidden": 32, "layers": 1, "heads": 2, "length": 16})


def live(folder: Path) -> list[int]:
    """The ids of its rounds until it was killed."""
    learned: list[int] = []
    device = subprocess.Popen(
        [sys.executable, "-m", "tests.web.learner", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert device.stdin is not None and device.stdout is not None
    for _ in range(ROUNDS):
        device.stdin.write("\n")
        device.stdin.flush()
        learned += [word for batch in json.loads(device.stdout.readline()) for word in batch]
    device.kill()
    device.wait()
    return learned


@pytest.mark.django_db(transaction=True)
@pytest.mark.heavy
def test_c13_a_device_killed_in_the_middle_of_rounds_learns_of_each_row_once(
    live_server,
    tmp_path,
    tokenizer,  # noqa: F811
    monkeypatch,
):
    monkeypatch.setattr(services, "FEWEST", 4)
    collaboration = make_collaboration(
        "demo", texts=(ELSEWHERE,), sequence_length=LENGTH, family=CAUSAL
    )
    (tmp_path / "text").write_text("\n".join(ROWS))
    facts = {
        "site": live_server.url,
        "token": make_device(make_user("anna"), "anna")[1],
        "recipe": collaboration.recipe.model_dump_json(),
        "text": str(tmp_path / "text"),
        "tokenizer": str(tokenizer.path),
        "vocab_size": tokenizer.vocab_size,
    }
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    wanted = {word for ids in tokenizer.encode_all(ROWS) for word in ids}
    learned: list[int] = []
    lives = 0
    while not wanted <= set(learned):
        learned += [word for word in live(tmp_path) if word in wanted]
        lives += 1
        assert len(learned) < 2 * len(wanted)
    assert len(set(learned[: len(wanted)])) == len(wanted)
    assert lives > 2
    assert Shard.objects.filter(passes__gte=1).count() == 4
