"""`python -m trainer evaluate`: what a model is worth, as a table and as one JSON line."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trainer.agent.exporting import find_base, read_recipe
from trainer.evaluation.labelled import Split
from trainer.evaluation.report import Report
from trainer.launcher.place import Unusable
from trainer.launcher.web import sha256_of
from trainer.recipe import Recipe
from trainer.sources.base import SourceUnavailable

TASKS = {
    "perplexity": "on a text, a document a line; of masked models the pseudo-perplexity",
    "tags": "of words: CoNLL files, a word and its tag a line",
    "classes": "of texts: CSV or JSONL with text and label",
}
# Volunteers' machines do without; (what is imported, what is installed).
NEEDED = {"tags": ("seqeval", "seqeval"), "classes": ("sklearn", "scikit-learn")}
LEAST_STARTS = 3
HUB = "hub:"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "task", choices=TASKS, help="; ".join(f"{name} {what}" for name, what in TASKS.items())
    )
    parser.add_argument("model", type=Path, help="exported folder, or checkpoint")
    parser.add_argument(
        "data",
        nargs="+",
        help="file; or one to learn from and one for the test, or a folder with train.* and "
        "test.*. Of one file a fifth is the test. Or a data set of a hub: hub:NAME CONFIGURATION "
        "TRAIN TEST and, with a comma, two columns: hub:unimelb-nlp/wikiann bn train test "
        "tokens,ner_tags. What is after the name may be left out",
    )
    parser.add_argument("--recipe", type=Path, help="JSON file of a checkpoint's recipe")
    parser.add_argument("--tokenizer", type=Path, help="default: tokenizer.json of the folder")
    parser.add_argument("--base", type=Path, help="folder with the recipe's base")
    parser.add_argument(
        "--most-tokens", type=int, default=20_000, help="of the text for perplexity; default: 20000"
    )
    parser.add_argument("--starts", type=int, default=LEAST_STARTS, help="default: 3")
    parser.add_argument("--epochs", type=int, default=5, help="of fine-tuning; default: 5")
    parser.add_argument("--rate", type=float, default=3e-4, help="of learning; default: 0.0003")
    parser.add_argument(
        "--report",
        type=Path,
        help="a JSON file that tells how far it is; starts that it has already are not done again",
    )
    parser.set_defaults(act=evaluate)


def evaluate(given: argparse.Namespace) -> int:
    """Raises Unusable in words."""
    _check(given)
    report = Report(given.report)
    began = time.monotonic()
    try:
        known = _named(given.model)
        recipe = read_recipe(given.recipe) if given.recipe else None
        result = _result(given, recipe, report)
    except OSError as error:
        place = error.filename or given.model
        raise Unusable(f"{place} cannot be used: {error.strerror or error}.") from error
    except (ValueError, SourceUnavailable) as error:
        raise Unusable(f"This cannot be evaluated: {error}.") from error
    seconds = round(time.monotonic() - began, 1)
    found = replace(result, seconds=seconds, model=known)
    report.end(found.as_json())
    print(*found.table(), sep="\n", file=sys.stderr, flush=True)
    print(json.dumps(found.as_json(), ensure_ascii=False))
    return 0


def _named(model: Path) -> dict[str, str]:
    """What the result says of the model."""
    sha256 = {"sha256": sha256_of(model)} if model.is_file() else {}
    return {"name": model.name, **sha256}


def _check(given: argparse.Namespace) -> None:
    if (needed := NEEDED.get(given.task)) and find_spec(needed[0]) is None:
        name = needed[1]
        raise Unusable(f"{given.task} needs {name}, which a site has: pip install {name}")
    if given.starts < LEAST_STARTS:
        raise Unusable(f"--starts {given.starts}: fewer than {LEAST_STARTS} tell no spread")
    if given.task == "perplexity" and (len(given.data) != 1 or given.data[0].startswith(HUB)):
        raise Unusable("perplexity is of one text: name one file")
    for name in ("epochs", "rate", "most_tokens"):
        if not getattr(given, name) > 0:
            raise Unusable(f"--{name.replace('_', '-')} {getattr(given, name)}: more than 0")


def _result(given: argparse.Namespace, recipe: Recipe | None, report: Report) -> Any:
    """The data are read first: they are wrong more often than the model, and sooner seen."""
    from trainer.evaluation import classifying, finetuning, perplexity, tagging
    from trainer.evaluation.model import opened

    data = None if given.task == "perplexity" else _labelled(given)
    plan = finetuning.Plan(given.starts, given.epochs, given.rate)
    if data is not None:
        report.go_on(_basis(given, data))
    base = find_base(recipe.base, given.base, "") if recipe else None
    with opened(given.model, given.tokenizer, recipe, base) as model:
        if data is None:
            return perplexity.evaluate(model, Path(given.data[0]), given.most_tokens, report)
        task = tagging if given.task == "tags" else classifying
        return task.evaluate(model, data, plan, report)


def _labelled(given: argparse.Namespace) -> Split:
    from trainer.evaluation import hub, labelled

    if given.data[0].startswith(HUB):
        return hub.read([given.data[0].removeprefix(HUB), *given.data[1:]], given.task)
    readers: dict[str, Callable[[Path], list[Any]]]
    readers = {"tags": labelled.sentences, "classes": labelled.examples}
    return labelled.read([Path(name) for name in given.data], readers[given.task])


def _basis(given: argparse.Namespace, data: Split) -> str:
    """The SHA-256 of all that the scores of a start follow from but its number and the versions."""
    model, recipe = given.model, given.recipe
    named = [*model.glob("*.safetensors"), model / "config.json"] if model.is_dir() else [model]
    named += [given.tokenizer or model / "tokenizer.json", *([recipe] if recipe else [])]
    files = sorted(sha256_of(file) for file in named if file.is_file())
    content = json.dumps([given.task, given.epochs, given.rate, files, data])
    return hashlib.sha256(content.encode()).hexdigest()
