"""A site with a past: rounds, credit, a checkpoint and events, as a few days would leave them."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from django.utils import timezone

from tests.factories import make_device, make_session, make_user
from tests.trainer.bengali import EVERYTHING
from trainer.experiment import Experiment
from trainer.recipe import Choice
from trainer.simulator.findings import Run, conclusion, summary
from trainer.text.corpus import Corpus
from trainer.text.making import make
from trainer.tokenizing import Wanted
from trainer.wire import Outcome
from webapp.artifacts.models import Artifact, Checkpoint, Kind
from webapp.artifacts.services import register_file
from webapp.collaborations.models import Collaboration, State
from webapp.credit.models import HourlyCredit, Receipt
from webapp.evaluations.models import Baseline, Evaluation, Start, Task
from webapp.lab.models import Trial
from webapp.live.models import Event, RoundRecord
from webapp.tokenizers.models import Making

PEOPLE = ("ada", "রূপা", "grace", "linus")


def give_past(collaboration: Collaboration, num_rounds: int = 120) -> None:
    now = timezone.now()
    collaboration.text_credit = "Wikipedia lead paragraphs, CC BY-SA 4.0"
    collaboration.summary = "A small language model that learns from encyclopedia leads."
    collaboration.state, collaboration.round = State.RUNNING, num_rounds
    collaboration.started_at = now - timedelta(hours=5)
    collaboration.save()
    RoundRecord.objects.bulk_create(
        _round(collaboration, number, now - timedelta(seconds=20 * (num_rounds - number)))
        for number in range(1, num_rounds + 1)
    )
    for place, name in enumerate(PEOPLE):
        _credit(collaboration, name, 4 - place, now)
    give_checkpoint(collaboration, 100, "ab" * 32)


def give_checkpoint(collaboration: Collaboration, number: int, sha256: str) -> None:
    artifact = Artifact.objects.create(
        kind=Kind.CHECKPOINT,
        sha256=sha256,
        size_bytes=14_208_111,
        filename=f"round-{number}.safetensors",
        path="x",
    )
    Checkpoint.objects.create(
        collaboration=collaboration, artifact=artifact, round=number, loss=3.4
    )


def _round(collaboration, number, at):
    outcome = {37: Outcome.PARTIAL, 90: Outcome.PARTIAL, 101: Outcome.FAILED, 110: Outcome.ALONE}
    loss = 2.9 + 6 * math.exp(-number / 18) + 0.15 * math.sin(number * 1.7)
    return RoundRecord(
        collaboration=collaboration,
        round=number,
        outcome=outcome.get(number, Outcome.CLEAN),
        members=3,
        samples=520,
        tokens=66_000,
        loss=loss,
        held_out_loss=loss + 0.2 if number % 10 == 0 else None,
        duration_s=6.1,
        mean_norm=0.61,
        told="one step for all, learning rate 0.001",
        at=at,
    )


def _credit(collaboration, name, share, now):
    user = make_user("")
    user.name = name
    user.save()
    device, _ = make_device(user, f"{name}-pc")
    for hours in range(5):
        HourlyCredit.objects.create(
            collaboration=collaboration,
            user=user,
            device=device,
            hour=now - timedelta(hours=hours),
            samples=3100 * share,
            tokens=390_000 * share,
            rounds=30,
            compute_s=2000,
        )
    ended = now - timedelta(minutes=5)
    session = make_session(
        device,
        collaboration,
        started_at=now - timedelta(hours=share),
        ended_at=ended,
        end_cause="stopped",
        compute_s=3000,
    )
    Receipt.objects.create(
        session=session,
        seq=1,
        round=120,
        samples=130 * share,
        tokens=16_000 * share,
        accepted=True,
        steps=10 * share,
        weight=0.1 * share,
        norm=0.9 + 0.1 * share,
        drift=0.0,
        at=now,
    )
    Event.objects.create(
        collaboration=collaboration, at=ended, what="left", text="left: stopped", device=device
    )


def give_trials() -> list[Trial]:
    """An experiment that is finished, and one that runs."""
    experiment = Experiment(strategies=(Choice(name="fedavg"), Choice(name="scaffold")), rounds=20)
    plan = experiment.model_dump(mode="json")
    names = {"fedavg": 2.0, "scaffold": 1.7, "local-only": 4.0, "centralised": 0.8}
    runs = [
        Run(name, seed, _curve(end + 0.1 * seed), end, end + 0.5, 0.2, bytes_sent=12_900_000)
        for name, end in names.items()
        for seed in experiment.every_seed()
    ]
    result = {
        "complete": True,
        "rounds_done": 240,
        "doing": "",
        "topics_of_each": [[13, 7, 0, 4, 9, 30]] * 8,
        "summary": summary(runs, list(names)),
        "conclusion": conclusion(experiment, runs, ["fedavg", "scaffold"]),
        "runs": [asdict(run) for run in runs],
    }
    done = Trial(title="Topics apart", plan=plan, state="finished", result=result, rounds_done=240)
    runs_now = Trial(title="Slow ones", plan=plan, state="running", rounds_done=90)
    runs_now.doing, runs_now.heard_at = "scaffold, seed 1", timezone.now()
    for trial in (done, runs_now):
        trial.save()
    return [done, runs_now]


def _curve(end: float) -> list[tuple[int, float]]:
    return [(number, end + 4 * math.exp(-number / 5)) for number in range(20)]


def give_tokenizers(folder: Path) -> tuple[Artifact, Making]:
    """One that is ready, made of Bengali sentences, and one that is being made."""
    (folder / "poems.txt").write_text("\n".join(EVERYTHING * 20))
    text = register_file(folder / "poems.txt", Kind.TEXT, title="Poems")
    wanted = Wanted(size=400, without=("visarga",))
    made = make(Corpus([folder / "poems.txt"]), wanted, folder / "tokenizer.json")
    file = register_file(
        folder / "tokenizer.json", Kind.TOKENIZER, title="Bengali poems", vocab_size=made.size
    )
    plan = wanted.model_dump(mode="json")
    ready = Making(title="Bengali poems", plan=plan, state="finished", artifact=file, share=1)
    ready.made = made.as_json()
    running = Making(title="Larger", plan=plan, state="running", share=0.38)
    running.doing, running.heard_at = "read 1,900,000 documents", timezone.now()
    for making in (ready, running):
        making.save()
        making.texts.set([text])
    return file, running


def give_evaluations(collaboration: Collaboration) -> None:
    """One task with a result, one that runs and one that failed, and a baseline; one without."""
    task = Task.objects.create(
        collaboration=collaboration, title="Names", kind="tags", file="names", every=20
    )
    score = {"mean": 0.7512, "std": 0.021, "n": 3}
    result = {
        "metric": "span_f1",
        "scores": {"span_f1": score, "word_accuracy": score},
        "baselines": [{"name": "all words O", "scores": {"span_f1": 0.0, "word_accuracy": 0.5}}],
        "data": {"sentences of the test": 1200},
    }
    rows = {"finished": {"result": result}, "running": {"share": 0.4, "doing": "start 2 of 3"}}
    rows |= {"failed": {"reason": "It needed more than 3 GB and was ended: choose less data."}}
    for number, (state, fields) in enumerate(rows.items()):
        known = {"round": 20 * number, "sha256": str(number) * 64, "heard_at": timezone.now()}
        row = Evaluation.objects.create(task=task, title="Names", state=state, **known, **fields)
        if state == "failed":
            for start in range(2):
                Start.objects.create(
                    evaluation=row, number=start, scores={"span_f1": 0.7, "word_accuracy": 0.9}
                )
    Baseline.objects.create(task=task, name="XLM-R-large", score=96.48, std=0.22, source="a paper")
    Task.objects.create(collaboration=collaboration, title="Held out", kind="perplexity")
    Task.objects.create(
        collaboration=collaboration, title="WikiANN", kind="tags", dataset="unimelb-nlp/wikiann bn"
    )
