"""Made-up texts on a few topics, and a recipe to learn them: what experiments are made with.

All topics share their grammar and some words; what follows which depends on the topic, so that a
model of one topic alone is of little use for the others.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.experiment import Experiment
from trainer.recipe import Choice, Optimizer, Recipe, Round, Text, Tokenizer
from trainer.simulator.files import Files, file_of
from trainer.text.tokenizer import train_tokenizer

DOCUMENTS_EACH = 80  # of a volunteer, on average
HELD_OUT = 40  # documents of each topic
SENTENCES = 3
VOCABULARY = 420
MICRO_BATCH, LENGTH = 4, 24
RATES = {"adamw": 0.01, "sgd": 0.5}  # of a few, the best for FedAvg; not tuned for the others
ROUND_S = 8.0  # with volunteers of the default speed
DOES = ("waits for", "looks at", "talks of", "comes with", "asks for")
WHEN = ("in the morning", "at night", "every day", "once more")
NAMES = ("kitchen", "sea", "garden", "music", "city", "mountain")
WHO = (
    ("the cook", "a baker", "the guest", "a waiter"),
    ("the sailor", "a fisherman", "the captain", "a diver"),
    ("the gardener", "a beekeeper", "the neighbour", "a florist"),
    ("the singer", "a drummer", "the pianist", "a dancer"),
    ("the driver", "a tourist", "the mayor", "a cyclist"),
    ("the climber", "a shepherd", "the guide", "a skier"),
)
WHAT = (
    ("the oven", "warm bread", "a soup", "fresh butter", "the menu"),
    ("the wind", "a heavy net", "the harbour", "high waves", "the tide"),
    ("the roses", "some rain", "an apple tree", "old tools", "the bees"),
    ("the chorus", "a slow waltz", "the violin", "loud drums", "the stage"),
    ("the tram", "a crowded square", "the museum", "bright lights", "the bridge"),
    ("the summit", "deep snow", "a narrow path", "the cable car", "the valley"),
)


@dataclass(frozen=True)
class Task:
    """`documents` with their `labels` are to be split; `held_out` are files, one for each topic,
    and `files.held_out` holds all of these. `rates` are the learning rates by optimizer.
    """

    recipe: Recipe
    files: Files
    documents: tuple[str, ...]
    labels: tuple[int, ...]
    held_out: tuple[Path, ...]
    rates: Mapping[str, float]


def make_task(folder: Path, experiment: Experiment, seed: int) -> Task:
    """Another seed makes other texts of the same kind."""
    rng = random.Random(f"{seed}/topics")  # noqa: S311 - sentences, not secrets
    volunteers, topics = experiment.volunteers, range(experiment.num_topics)
    labels = tuple(number % len(topics) for number in range(DOCUMENTS_EACH * volunteers))
    documents = tuple(document(label, rng) for label in labels)
    held_out = [[document(topic, rng) for _ in range(HELD_OUT)] for topic in topics]
    paths = tuple(folder / f"held-out-{NAMES[topic]}.txt" for topic in topics)
    for path, lines in zip(paths, held_out, strict=True):
        write(path, lines)
    write(folder / "held-out.txt", [line for lines in held_out for line in lines])
    write(folder / "texts.txt", documents)
    train_tokenizer(documents, folder / "tokenizer.json", VOCABULARY)
    text, mixed = (_text(folder / name) for name in ("texts.txt", "held-out.txt"))
    tokenizer = folder / "tokenizer.json"
    recipe = Recipe(
        collaboration="experiment",
        family=Choice(name="causal", params={"hidden": 32, "layers": 1, "heads": 2, "length": 24}),
        strategy=Choice(name="dedloc"),
        tokenizer=Tokenizer(file=file_of(tokenizer), vocab_size=VOCABULARY),
        texts=(text,),
        held_out=mixed,
        sequence_length=LENGTH,
        micro_batch=MICRO_BATCH,
        seed=seed,
        optimizer=Optimizer(warmup_rounds=0, schedule="constant"),
        round=Round(
            target_samples=round(ROUND_S * volunteers * MICRO_BATCH),
            deadline_s=60,
            matchmaking_s=4,
            checkpoint_every=10**6,  # nobody needs any, and a disk is slow
        ),
    )
    files = Files(tokenizer, (folder / "texts.txt",), folder / "held-out.txt")
    return Task(recipe, files, documents, labels, paths, RATES)


def document(topic: int, rng: random.Random) -> str:
    sentences = (
        f"{rng.choice(WHO[topic])} {rng.choice(DOES)} {rng.choice(WHAT[topic])} {rng.choice(WHEN)}"
        for _ in range(SENTENCES)
    )
    return " . ".join(sentences)


def write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


def _text(path: Path) -> Text:
    return Text(kind="site", file=file_of(path))
