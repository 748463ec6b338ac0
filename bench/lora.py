"""LoRA on a model of 135 M parameters: three real agents of a real site, each with three plays
of its own that never leave it; and ranks 1, 2, 4, 8 and 64 side by side, network left out.

About ten minutes on two cores that nobody else uses: few and small steps, which show that losses
fall and what ranks cost, not how good an adapter gets.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.smollm2 import HELD_OUT, PLAYS, make_base, play
from tests.swarm.site import Site
from tests.trainer.averaging import end_round
from tests.waiting import wait_for
from trainer import catalogue
from trainer.bases import describe
from trainer.data.batches import batches
from trainer.engine.learner import Learner
from trainer.families.base import CAUSAL
from trainer.planner.traffic import recipe_round_bytes
from trainer.recipe import Choice, File, Optimizer, Recipe, Round, Text, Tokenizer
from trainer.text.tokenizer import Tokenizer as Encoder

GOAL = 30  # times fewer bytes than with all of the model
RANK, RANKS = 8, (1, 2, 4, 8, 64)
ROUNDS, STEPS, ROWS, LENGTH = 2, 3, 4, 32
RANK_ROUNDS, RANK_STEPS, HELD_OUT_BATCHES = 2, 3, 6
LONGEST_S = 1200.0
NAMES = ("anna", "boris", "clara")
OWN = re.compile(r"your own texts: loss ([\d.]+) after round \d+, ([\d.]+) before")
HELD_OUT_LOSSES = (
    "select held_out_loss from live_roundrecord where held_out_loss is not null order by round"
)
OPEN = """
from pathlib import Path
from trainer.recipe import File, Recipe, Text, Tokenizer
from webapp.artifacts.services import register_file
from webapp.collaborations import services
recipe = Recipe.model_validate_json(Path("{folder}/recipe.json").read_text())
for name, kind in (("tokenizer.json", "tokenizer"), ("held-out.txt", "text")):
    register_file(Path("{folder}") / name, kind)
services.open_(services.create(title="Plays", recipe=recipe, by=None), by=None)
"""


def file_at(path: Path) -> File:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return File(sha256=digest, size_bytes=len(content), filename=path.name)


def recipe_in(folder: Path, rank: int) -> Recipe:
    """Of the base, tokenizer and held-out play that lie there; `rank` 0: all of the base trains."""
    base = describe(folder / "base")
    tokenizer = file_at(folder / "tokenizer.json")
    held_out = file_at(folder / "held-out.txt")
    return Recipe(
        collaboration="plays",
        family=Choice(name="pretrained_causal"),
        strategy=Choice(name="fedavg", params={"most_local_steps": STEPS}),
        tokenizer=Tokenizer(file=tokenizer, vocab_size=49_152),
        texts=(Text(kind="private"),),
        held_out=Text(kind="site", file=held_out),
        sequence_length=LENGTH,
        micro_batch=ROWS,
        optimizer=Optimizer(learning_rate=5e-4, warmup_rounds=0, schedule="constant"),
        round=Round(
            target_samples=10**6, deadline_s=600, matchmaking_s=20, averaging_s=120,
            checkpoint_every=1,
        ),
        base=base,
        adapter=Choice(name="lora", params={"rank": rank, "alpha": 2.0 * rank}) if rank else None,
    )  # fmt: skip


def prepare(folder: Path) -> None:
    make_base(folder / "base")
    (folder / "base" / "tokenizer.json").rename(folder / "tokenizer.json")
    (folder / "held-out.txt").write_text(play(HELD_OUT))
    for name, titles in zip(NAMES, PLAYS, strict=True):
        (folder / name).mkdir()
        for title in titles:
            (folder / name / f"{title}.txt").write_text(play(title))


def together(folder: Path) -> dict[str, Any]:
    """Losses on what each volunteer holds back, and on the held-out play; the site's own bytes."""
    (folder / "recipe.json").write_text(recipe_in(folder, RANK).model_dump_json())
    site = Site(folder / "site")
    site.folder.mkdir()
    began = time.monotonic()
    try:
        site.start("--no-volunteer")
        site.manage("shell", "-v", "0", "-c", OPEN.format(folder=folder))
        for name in NAMES:
            site.agent_at(site.url, name, slug="plays", texts=str(folder / name))

        def told() -> bool:
            own = min(len(OWN.findall(site.said(name))) for name in NAMES)
            return min(own, len(site.rows(HELD_OUT_LOSSES))) >= ROUNDS

        wait_for("the losses of the last round", told, LONGEST_S)
        held_out = site.rows(HELD_OUT_LOSSES)
        sent = site.rows(
            "select avg(bytes_in + bytes_out), max(members) from live_roundrecord "
            "where from_coordinator and outcome = 'clean'"
        )
        own = {name: OWN.findall(site.said(name)) for name in NAMES}
    finally:
        site.end()
    return {
        "own": {n: [float(found[0][1]), float(found[-1][0])] for n, found in own.items()},
        "held_out": [loss for (loss,) in held_out],
        "coordinator_bytes_a_round": int(sent[0][0] or 0),
        "members": sent[0][1],
        "seconds": round(time.monotonic() - began),
    }


def by_rank(folder: Path, rank: int) -> dict[str, float]:
    """What three learners with a play each come to, and what that takes."""
    recipe = recipe_in(folder, rank)
    encoder = Encoder.of(recipe, folder / "tokenizer.json")
    learners = [Learner(recipe, encoder.pad, folder / "base") for _ in NAMES]

    def batches_of(text: str, seed: int) -> Any:
        return batches(
            text.splitlines(), encoder, CAUSAL, length=LENGTH, size=lambda: ROWS, seed=seed
        )

    own = [
        batches_of((folder / name / f"{titles[0]}.txt").read_text(), seed)
        for seed, (name, titles) in enumerate(zip(NAMES, PLAYS, strict=True))
    ]
    held_out = batches_of((folder / "held-out.txt").read_text(), 9)
    looked_at = [next(held_out) for _ in range(HELD_OUT_BATCHES)]
    before, began = learners[0].evaluate(looked_at)[0], time.process_time()
    for _ in range(RANK_ROUNDS):
        for learner, stream in zip(learners, own, strict=True):
            for _ in range(RANK_STEPS):
                learner.learn(next(stream))
        end_round(learners)
    seconds = time.process_time() - began
    found = {
        "parameters": catalogue.trained_parameters(recipe),
        "before": round(before, 4),
        "after": round(learners[0].evaluate(looked_at)[0], 4),
        "round_bytes": recipe_round_bytes(recipe),
        "cpu_seconds": round(seconds, 1),
        "average_missed": round(learners[0].adapted.missed or 0.0, 4),
    }
    print(f"rank {rank}: {found}", flush=True)
    return found


def main() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="potluck-lora-") as name:
        folder = Path(name)
        prepare(folder)
        ranks = {str(rank): by_rank(folder, rank) for rank in RANKS}
        swarm = together(folder)
        print(f"three agents: {swarm}", flush=True)
        whole, thin = (recipe_round_bytes(recipe_in(folder, rank)) for rank in (0, RANK))
    falls = [last < first for first, last in swarm["own"].values()]
    falls.append(swarm["held_out"][-1] < swarm["held_out"][0])
    return {
        "value": round(whole / thin, 1),
        "unit": "times fewer bytes a round at rank 8 than with all of the model",
        "goal": f">= {GOAL}, and held-out losses fall for all",
        "met": whole / thin >= GOAL and all(falls) and swarm["members"] == len(NAMES),
        "three_agents": swarm,
        "ranks": ranks,
    }
