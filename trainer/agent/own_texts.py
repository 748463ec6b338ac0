"""A volunteer's own texts: found, counted and agreed to before the device asks to join."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

from trainer import catalogue
from trainer.agent.files import Files
from trainer.agent.join import Api, Stopped
from trainer.agent.seat import Seat
from trainer.agent.wishes import Wishes
from trainer.data.survey import Survey, survey
from trainer.launcher import web
from trainer.launcher.own_texts import OwnTexts, ask, remember, remembered, usable
from trainer.launcher.place import Unusable
from trainer.recipe import CODEC_BYTES, Recipe
from trainer.text.tokenizer import Tokenizer, TokenizerError
from trainer.wire import LeaveCause, Role

NOT_NAMED = "This collaboration trains on texts of your own: start with --data PATH."
NOT_SHOWN = f"{NOT_NAMED} The site could not say so before: start it again."
LEAVES = """\
What leaves this computer, each round:
  to other peers, the site's coordinator among them
                  an update of the model, {update_mb:,.1f} MB, worked out from your texts; and
                  of how many samples and tokens it is, their loss, and its length
  to the site     how many samples, tokens and steps, their loss, how far these steps led, and
                  this device's speed and state; the page of the collaboration shows them
What does not: the texts, their tokens, the names of files and folders.
Other peers see the update as it is, and the model that comes of all updates goes to them all, and
to everybody where the organiser lets it: who takes pains may learn something of a text from them.
At the end this device makes a model of your own, with a few more steps on your texts, and keeps it
here."""
MAY_SHARE = "May the site know the loss on those kept back, too? Organisers see it. [y/N] "
TOO_FEW = "  They are too few to keep some back and see what the model is worth for you."

MOST_NAMED = 10  # files that are left out


def agree(seat: Seat, data: str, *, asks: bool) -> Seat | None:
    """The seat with its texts, where the recipe is about such; None: the person said no.

    `data` is what was named now, else what was named before counts. Raises Unusable, in words.
    """
    named = remembered(seat.folder)
    try:
        recipe = Api(seat.site, seat.token).recipe(seat.slug)
    except web.Refusal:
        return seat  # joining says why
    except web.Unreachable:
        is_agreed = named.agreed and (not data or usable(data) == named.path)
        return _seated(seat, named) if is_agreed else seat
    if not recipe.is_private:
        if data:
            print("This collaboration trains on the site's texts; yours are not read.", flush=True)
        return seat
    if data or named.path:
        path = usable(data or str(named.path))
    elif not asks:
        raise Unusable(NOT_NAMED)
    elif (answer := ask()) is not None:
        path = answer
    else:
        return None
    found = _survey(seat, recipe, path)
    print(*words(found, recipe, path), sep="\n", flush=True)
    if not found.samples:
        raise Unusable("There is nothing in it to train on, so this device does not join.")
    texts = OwnTexts(path, recipe.sha256())
    is_known = texts[:2] == named[:2]
    if is_known and not (data and asks):
        texts = named
    elif asks:
        if not _yes("Train on them? [y/N] "):
            return None
        shares = found.num_held_out > 0 and _yes(MAY_SHARE)
        texts = texts._replace(shares=shares)
    remember(seat.folder, texts)
    return _seated(seat, texts)


def _seated(seat: Seat, texts: OwnTexts) -> Seat:
    return replace(seat, own_texts=texts.path, shares_own=texts.shares)


def _yes(question: str) -> bool:
    return input(question).strip().lower() in ("y", "yes")


def check_named(seat: Seat, recipe: Recipe, wishes: Wishes) -> None:
    """Raises Stopped where texts are needed and the site, being away, could not say so before."""
    if recipe.is_private and seat.role is not Role.COORDINATOR and seat.own_texts is None:
        wishes.stop(NOT_SHOWN, LeaveCause.FAILED)
        raise Stopped


def _survey(seat: Seat, recipe: Recipe, path: Path) -> Survey:
    """Raises Unusable when the site's tokenizer cannot be had."""
    print(f"Reading {path} …", flush=True)
    try:
        file = Files(seat.site, seat.cache).fetch(recipe.tokenizer.file)
        tokenizer = Tokenizer.of(recipe, file)
    except (web.Unreachable, web.Refusal, web.Damaged, TokenizerError, OSError) as error:
        raise Unusable(f"Your texts could not be counted: {error}") from error
    family = catalogue.create("families", recipe.family)

    def shown(count: int) -> None:
        print(f"  {count:,} documents …", flush=True)

    return survey(path, tokenizer, family.objective, recipe.sequence_length, shown)


def words(found: Survey, recipe: Recipe, path: Path) -> list[str]:
    """What was found, and what leaves the machine, for its owner."""
    about = "about " if found.is_estimate else ""
    said = [
        f"Your texts: {found.num_documents:,} documents in {found.num_files:,} files. Trained on "
        f"are {found.num_documents - found.num_held_out:,}, {about}{found.tokens:,} tokens: "
        f"{about}{found.samples:,} samples of {recipe.sequence_length} tokens."
    ]
    if found.num_held_out:
        said.append(f"  {found.num_held_out:,} are kept back, to see here what the model is worth.")
    elif found.samples:
        said.append(TOO_FEW)
    if found.broken:
        said.append(f"  {found.broken:,} lines or rows could not be read and are skipped.")
    for file, reason in islice(found.left_out.items(), MOST_NAMED):
        name = file.name if file == path else file.relative_to(path)
        said.append(f"  {name} is left out: {reason}.")
    if (more := len(found.left_out) - MOST_NAMED) > 0:
        said.append(f"  {more:,} more files are left out; the log file names them.")
    update_mb = catalogue.offered_values(recipe) * CODEC_BYTES[recipe.round.codec] / 1e6
    return [*said, *LEAVES.format(update_mb=update_mb).splitlines()]
