"""`python -m trainer tokenizer`: makes one from texts, or shows what one does with a text."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from trainer.launcher.place import Unusable
from trainer.text.corpus import Corpus
from trainer.text.preview import preview
from trainer.text.tokenizer import TokenizerError
from trainer.tokenizing import PURPOSES, STEPS, Wanted

if TYPE_CHECKING:
    from trainer.text.making import Made

USUAL = Wanted()
USUAL_MEGABYTES = 500.0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("texts", type=Path, nargs="*", help="files and folders")
    parser.add_argument("--out", type=Path, default=Path("tokenizer.json"), help="what is written")
    parser.add_argument("--size", type=int, default=USUAL.size, help="tokens; default: 32000")
    parser.add_argument(
        "--purpose", choices=PURPOSES, default=USUAL.purpose, help="decides the special tokens"
    )
    parser.add_argument(
        "--without", default="", metavar="STEP,…", help=f"leave out of {', '.join(STEPS)}"
    )
    parser.add_argument(
        "--megabytes",
        type=float,
        default=USUAL_MEGABYTES,
        help="of larger texts, look at so much, taken evenly; default: 500",
    )
    parser.add_argument("--report", type=Path, help="a JSON file that tells how far it is")
    parser.add_argument(
        "--preview", type=Path, metavar="TOKENIZER", help="show what it makes of standard input"
    )
    parser.set_defaults(act=tokenizer)


def tokenizer(given: argparse.Namespace) -> int:
    """Raises Unusable in words."""
    try:
        if given.preview:
            print(json.dumps(preview(given.preview, _said()), ensure_ascii=False, indent=1))
        else:
            _make(given)
    except TokenizerError as error:
        raise Unusable(f"{error}.") from error
    return 0


def _said() -> str:
    return sys.stdin.buffer.read().decode(errors="replace")


def _make(given: argparse.Namespace) -> None:
    if not given.texts:
        raise Unusable("Name the files or folders with the texts to make a tokenizer from.")
    if not given.megabytes > 0:
        raise Unusable(f"--megabytes {given.megabytes} makes no sense: it is more than 0")
    from trainer.text.making import make

    wanted = _wanted(given)

    def told(what: str, share: float) -> None:
        print(f"{share:4.0%}  {what}", flush=True)
        _report(given.report, {"complete": False, "doing": what, "share": share})

    try:
        corpus = Corpus(given.texts)
        corpus.share = given.megabytes * 1e6 / max(1, corpus.num_bytes)
        made = make(corpus, wanted, given.out, told)
    except OSError as error:
        place, why = error.filename or given.out, error.strerror or error
        raise Unusable(f"{place} cannot be used: {why}.") from error
    _report(given.report, {"complete": True, "doing": "", "share": 1.0, "made": made.as_json()})
    print(*_told(made, given.size, given.out), sep="\n")


def _wanted(given: argparse.Namespace) -> Wanted:
    without = tuple(filter(None, given.without.split(",")))
    if strange := sorted(set(without) - set(STEPS)):
        steps = "; ".join(f"{name} ({summary})" for name, summary in STEPS.items())
        raise Unusable(f"--without {strange[0]}: there is no such step. Steps: {steps}")
    try:
        return Wanted.model_validate(
            {"size": given.size, "purpose": given.purpose, "without": without}
        )
    except ValidationError as error:
        raise Unusable(f"--size {given.size}: {error.errors()[0]['msg']}") from error


def _report(file: Path | None, content: dict[str, Any]) -> None:
    """Whoever reads it meanwhile gets the one before."""
    if file is not None:
        new = file.with_name(f"{file.name}.new")
        new.write_text(json.dumps(content))
        new.replace(file)


def _told(made: Made, wanted: int, out: Path) -> list[str]:
    seen = made.seen
    lines = [
        f"{out} has {made.size:,} tokens, made from {seen.documents:,} documents with "
        f"{made.num_words:,} different words.",
        f"On the first of them: {made.characters_per_token:.2f} characters per token, "
        f"{made.unknown_share:.3%} unknown.",
    ]
    if made.size < wanted:
        lines.append(f"{wanted:,} were wanted: the texts have no more to tell apart.")
    if seen.split:
        lines.append(f"Long lines split: {seen.split:,}")
    if seen.broken:
        lines.append(f"Lines that cannot be read: {seen.broken:,}, first {seen.first_broken}")
    lines += [f"Left out: {path}: {why}" for path, why in seen.left_out.items()]
    return lines
