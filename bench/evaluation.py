"""`python -m trainer evaluate` on small GPT-2s as they begin and after they have learnt from text:
topics (English), parts of speech (Bengali) and entities (Japanese), where the packages are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from bench.evaluation_data import CORPORA, Corpus, place_of
from trainer.engine.learner import Learner
from trainer.engine.texts import training_batches
from trainer.launcher.web import sha256_of
from trainer.recipe import Choice, File, Optimizer, Recipe, Text, Tokenizer
from trainer.text.tokenizer import Tokenizer as Encoder
from trainer.text.tokenizer import train_tokenizer

ROWS, LENGTH = 16, 64
SHAPE = {"hidden": 64, "layers": 2, "heads": 4, "length": LENGTH}


def make_recipe(folder: Path, corpus: Corpus) -> Recipe:
    size = train_tokenizer(
        (folder / "text.txt").read_text().splitlines(), folder / "tokenizer.json", corpus.vocabulary
    )
    sha256 = sha256_of(folder / "tokenizer.json")
    file = File(sha256=sha256, size_bytes=1, filename="tokenizer.json")
    recipe = Recipe(
        collaboration="bench",
        family=Choice(name="causal", params=SHAPE),
        strategy=Choice(name="dedloc"),
        tokenizer=Tokenizer(file=file, vocab_size=size),
        texts=(Text(kind="local", path=str(folder / "text.txt")),),
        sequence_length=LENGTH,
        micro_batch=ROWS,
        optimizer=Optimizer(learning_rate=3e-3, warmup_rounds=50, total_rounds=corpus.steps),
    )
    (folder / "recipe.json").write_text(recipe.model_dump_json())
    return recipe


def train(folder: Path, recipe: Recipe, steps: int) -> float:
    """Alone, a micro-batch a round; writes the model as it begins and as it ends. Its CPU-s."""
    torch.set_num_threads(1)
    began = time.process_time()
    tokenizer = Encoder.of(recipe, folder / "tokenizer.json")
    learner = Learner(recipe, tokenizer.pad)
    learner.save(folder / "begun.safetensors")
    batches = training_batches(recipe, (None,), tokenizer, learner.family.objective, "bench")
    for _ in range(steps):
        learner.learn(next(batches))
        offer = learner.offer()
        assert offer is not None
        learner.accept(offer.tensors, [])
    learner.save(folder / "trained.safetensors")
    return time.process_time() - began


def evaluate(folder: Path, task: str, model: str, *words: str) -> dict[str, Any]:
    told = [task, f"{model}.safetensors", *words, "--recipe", "recipe.json"]
    told += ["--tokenizer", "tokenizer.json", "--rate", "0.001", "--most-tokens", "2000"]
    said = subprocess.run(
        [sys.executable, "-m", "trainer", "evaluate", *told],
        cwd=folder,
        env=_environment(),
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ).stdout
    found: dict[str, Any] = json.loads(said)
    return {name: found[name] for name in ("scores", "baselines", "data")}


def _environment() -> dict[str, str]:
    here = str(Path(__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{here}:{known}"}


def measure(folder: Path, corpus: Corpus) -> dict[str, Any]:
    """Of the model as it begins and as it ends: perplexity, and what it learns from labels."""
    seconds = train(folder, make_recipe(folder, corpus), corpus.steps)
    found: dict[str, Any] = {"cpu_s": round(seconds)}
    for model in ("begun", "trained"):
        perplexity = evaluate(folder, "perplexity", model, "held-out.txt")["scores"]
        epochs = str(corpus.epochs)
        learnt = evaluate(folder, corpus.task, model, *corpus.data, "--epochs", epochs)
        found[model] = learnt["scores"] | perplexity
    return found | {"baselines": learnt["baselines"], "data": learnt["data"]}


def main() -> dict[str, Any]:
    """Met where every trained model is less perplexed, and better by what its task is judged by,
    than the same one as it began, by more than the spread of both."""
    found: dict[str, Any] = {}
    for name, (package, write) in CORPORA.items():
        place = place_of(package)
        if place is None:
            found[name] = f"not measured: the package {package[0]} is not installed"
            continue
        with tempfile.TemporaryDirectory(prefix="potluck-evaluation-") as folder:
            found[name] = measure(Path(folder), write(place, Path(folder)))
        print(json.dumps({name: found[name]}, ensure_ascii=False), file=sys.stderr, flush=True)
    measured = [one for one in found.values() if isinstance(one, dict)]
    return {"met": bool(measured) and all(map(_is_better, measured)), **found}


def _is_better(one: dict[str, Any]) -> bool:
    metric = next(iter(one["begun"]))
    before, after = one["begun"][metric], one["trained"][metric]
    learnt = after["mean"] - before["mean"] > before["std"] + after["std"]
    return learnt and one["trained"]["loss"]["mean"] < one["begun"]["loss"]["mean"]
