"""Agents that measure a real checkpoint together, over the calls of the site."""

from __future__ import annotations

import shutil
import threading
from functools import partial
from types import SimpleNamespace

import pytest

from tests.factories import make_collaboration, make_device, make_user
from tests.trainer.models import SHAPES, play_round
from tests.waiting import wait_for
from trainer.agent.evaluating import Evaluation
from trainer.agent.join import Api, persist
from trainer.agent.seat import Seat
from trainer.agent.wishes import Wishes
from trainer.engine import checkpoint as files
from trainer.engine import texts
from trainer.engine.evaluating import Evaluator
from trainer.engine.learner import Learner
from trainer.recipe import Choice, File, Text, Tokenizer
from trainer.text.tokenizer import Tokenizer as Encoder
from trainer.text.tokenizer import train_tokenizer
from trainer.wire import LeaveCause
from webapp.artifacts.models import Checkpoint
from webapp.artifacts.services import register_file
from webapp.credit.models import HourlyCredit
from webapp.held_out import services
from webapp.held_out.models import Part
from webapp.held_out.selectors import newest_evaluation


@pytest.fixture(autouse=True)
def artifacts_folder(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


class Screen:
    def __init__(self) -> None:
        self.said = []

    def progress(self, message) -> None:
        self.said.append(f"{message.activity}: {message.reason}")


SENTENCES = [f"the cat sat on mat {n} and looked at the moon for {n * n} days" for n in range(200)]


def trained(tmp_path):
    """A collaboration whose files are on the site, and what a trained peer of it says of them."""
    paths = {name: tmp_path / name for name in ("tokenizer.json", "held-out.txt")}
    train_tokenizer(SENTENCES, paths["tokenizer.json"], 320)
    paths["held-out.txt"].write_text("\n".join(SENTENCES))
    made = {}
    for name, path in paths.items():
        artifact = register_file(path, "text" if name.endswith("txt") else "tokenizer")
        made[name] = File(sha256=artifact.sha256, size_bytes=path.stat().st_size, filename=name)
    text = Text(kind="site", file=made["held-out.txt"])
    collaboration = make_collaboration(
        "measured",
        family=Choice(name="albert", params=SHAPES["albert"]),
        tokenizer=Tokenizer(file=made["tokenizer.json"], vocab_size=320),
        texts=(text,),
        held_out=text,
        sequence_length=16,
        micro_batch=4,
    )
    recipe, encoder = (
        collaboration.recipe,
        Encoder.of(collaboration.recipe, paths["tokenizer.json"]),
    )
    learner = Learner(recipe, encoder.pad)
    objective = learner.family.objective
    for batch in texts.held_out_batches(recipe, paths["held-out.txt"], encoder, objective, 16):
        play_round(learner, batch)
    path = tmp_path / files.filename(learner.round)
    learner.save(path)
    kept = shutil.copy(path, tmp_path / "kept")
    artifact = register_file(path, "checkpoint", title="measured")
    Checkpoint.objects.create(collaboration=collaboration, artifact=artifact, round=learner.round)
    evaluator = Evaluator(recipe, encoder, paths["held-out.txt"], None)
    parts = [evaluator.measure(kept, n, services.NUM_PARTS) for n in range(services.NUM_PARTS)]
    return collaboration, learner, parts


@pytest.mark.django_db(transaction=True)
def test_two_agents_measure_a_real_checkpoint_together_over_the_sites_own_calls(
    live_server, tmp_path
):
    collaboration, learner, parts = trained(tmp_path)
    collaboration.visibility = "organisers"  # for others; agents need the file
    collaboration.save()
    grant = SimpleNamespace(
        recipe=collaboration.recipe, recipe_sha256=collaboration.revision.sha256
    )
    agents, causes = [], []
    for name in ("ada", "ben"):
        _, token = make_device(make_user(name), name)
        folder = tmp_path / name
        folder.mkdir()
        seat = Seat(live_server.url, token, "measured", folder / "cache", folder)
        wishes, screen = Wishes(folder / "wish.json"), Screen()
        patient = partial(persist, wishes=wishes, waiting=print)
        one = Evaluation(seat, grant, Api(live_server.url, token), screen, wishes, patient)
        thread = threading.Thread(target=lambda one=one: causes.append(one.run()), daemon=True)
        agents.append((thread, wishes, screen))
        thread.start()
    done = Part.objects.filter(loss_sum__isnull=False)
    wait_for("all parts", lambda: done.count() == services.NUM_PARTS)
    for thread, wishes, _ in agents:
        wishes.stop("enough", LeaveCause.STOPPED)
        thread.join(20)
    assert causes == [LeaveCause.STOPPED] * 2
    for part in Part.objects.all():
        loss, tokens = parts[part.number]
        assert (part.loss_sum, part.tokens) == (pytest.approx(loss, rel=1e-5), tokens)
    found = newest_evaluation(collaboration)
    tokens = sum(tokens for _, tokens in parts)
    assert found.loss == pytest.approx(sum(loss for loss, _ in parts) / tokens, rel=1e-5)
    assert sum(HourlyCredit.objects.values_list("evaluated", flat=True)) == tokens > 0
    said = "\n".join(agents[0][2].said + agents[1][2].said)
    assert f"of 16 of the held-out text, with the model of round {learner.round}" in said
    assert f"waiting: all parts of round {learner.round}'s model are measured" in said
