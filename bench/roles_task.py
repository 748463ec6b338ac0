"""Speaking roles of Shakespeare's plays as volunteers: each has what it says in its play.

As LEAF has it (Caldas et al. 2018, section 2), from the plays of the package `shakespeare`. Of what
a role says, every sixth speech is held out.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from pathlib import Path

from bench.smollm2 import in_package
from trainer.experiment import Experiment
from trainer.recipe import Choice, Optimizer, Recipe, Round, Text, Tokenizer
from trainer.simulator.files import Files, file_of
from trainer.simulator.topics import Task, write
from trainer.text.tokenizer import train_tokenizer

LEAST = 6_000  # characters of a role, without names and stage directions that stand alone
EVERY_HELD_OUT = 6
NAME = re.compile(r" *([A-Z][A-Za-z' ]{1,24})\. *")
NO_NAMES = ("ACT", "SCENE")
VOCABULARY, LENGTH, MICRO_BATCH = 600, 32, 8
MODEL = {"hidden": 64, "layers": 2, "heads": 2, "length": LENGTH}
STEPS = 16  # of the middle volunteer in a round: a second each
# For FedAvg after 10 rounds with a seed of its own (99), the best of .001, .003 and .01 and, with
# momentum 0.9, of .02, .05, .1 and .3.
RATES = {"adamw": 0.001, "sgd": 0.1}

Roles = dict[tuple[str, str], list[str]]  # speeches by play and name


def all_roles() -> Roles:
    """Those who say enough. Raises LookupError where the plays are not installed."""
    folder = in_package("shakespeare", "/hamlet_gut.txt").parent
    found: Roles = defaultdict(list)
    for path in sorted(folder.glob("*_gut.txt")):
        for block in path.read_text("latin-1").split("\n\n"):
            first, _, rest = block.strip("\n").partition("\n")
            name = NAME.fullmatch(first)
            if name and rest and not name[1].upper().startswith(NO_NAMES):
                found[path.stem, name[1].upper()].append(" ".join(rest.split()))
    return {role: said for role, said in found.items() if sum(map(len, said)) >= LEAST}


def make_task(folder: Path, experiment: Experiment, seed: int) -> Task:
    """Another seed draws other roles. `experiment` splits by label, one for each volunteer."""
    roles = all_roles()
    rng = random.Random(f"{seed}/roles")
    chosen = [roles[role] for role in rng.sample(sorted(roles), experiment.volunteers)]
    held_out = [said[::EVERY_HELD_OUT] for said in chosen]
    kept = [[s for n, s in enumerate(said) if n % EVERY_HELD_OUT] for said in chosen]
    documents = tuple(speech for said in kept for speech in said)
    labels = tuple(number for number, said in enumerate(kept) for _ in said)
    paths = tuple(folder / f"held-out-{number:02}.txt" for number in range(len(chosen)))
    for path, speeches in zip(paths, held_out, strict=True):
        write(path, speeches)
    files = Files(folder / "tokenizer.json", (folder / "texts.txt",), folder / "held-out.txt")
    write(files.texts[0], documents)
    write(folder / "held-out.txt", [speech for said in held_out for speech in said])
    train_tokenizer(documents, files.tokenizer, VOCABULARY)
    recipe = recipe_in(folder, experiment.volunteers, seed)
    return Task(recipe, files, documents, labels, paths, RATES)


def recipe_in(folder: Path, volunteers: int, seed: int) -> Recipe:
    return Recipe(
        collaboration="roles",
        family=Choice(name="causal", params=MODEL),
        strategy=Choice(name="fedavg"),
        tokenizer=Tokenizer(file=file_of(folder / "tokenizer.json"), vocab_size=VOCABULARY),
        texts=(Text(kind="site", file=file_of(folder / "texts.txt")),),
        held_out=Text(kind="site", file=file_of(folder / "held-out.txt")),
        sequence_length=LENGTH,
        micro_batch=MICRO_BATCH,
        seed=seed,
        optimizer=Optimizer(warmup_rounds=0, schedule="constant"),
        round=Round(
            target_samples=STEPS * volunteers * MICRO_BATCH,
            deadline_s=120,
            matchmaking_s=4,
            checkpoint_every=10**6,  # nobody needs any, and a disk is slow
        ),
    )
