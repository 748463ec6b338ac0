"""How well a model guesses the tokens of a text that it was not trained on.

Causal: exp of the mean loss per token, each guessed from those before it in its sequence. Masked:
the pseudo-perplexity of Salazar et al. 2020 (Masked Language Model Scoring,
https://aclanthology.org/2020.acl-main.240), where each token in turn is hidden and guessed from all
others. Encoder and decoder: of the tokens that it has to write, each guessed from the text with
gaps and from what it should have written before; the gaps are those of training, in places that are
the same for every model (`SEED`). Prefix-LM: of what comes after a prefix, in the same way. All are
by token, so models with other tokenizers cannot be compared by them, and each has a name of its
own, so that they are not compared with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from trainer.catalogue import create
from trainer.data.batches import batches
from trainer.data.packing import pack
from trainer.evaluation.model import Evaluated
from trainer.evaluation.results import Baseline, Result, Score
from trainer.families.base import Batch
from trainer.parts import Choice
from trainer.sources.base import Source
from trainer.sources.kinds import TextSource
from trainer.sources.places import Disk
from trainer.text.tokenizer import Tokenizer

SCORES_AT_ONCE = 2**25  # values: a batch computes one for each place and each token there is
MOST_ROWS = 64
ORDER, SEED = "evaluate", 0
PSEUDO = "pseudo_perplexity"
# Of what a model has to guess: what its perplexity is called.
NAMES = {
    "causal": "perplexity",
    "prefix": "prefix_perplexity",
    "spans": "span_perplexity",
    "masked": "masked_perplexity",
}


def evaluate(
    model: Evaluated, text: Path, most_tokens: int, told: Callable[[str, float], None]
) -> Result:
    """On the first `most_tokens` tokens of the text's documents, which are in an order by lot that
    is the same for every model. The text is of any kind that is trained on; of a packed one or a
    table the order is by lot within a part that is held. Raises ValueError, OSError and
    SourceUnavailable."""
    name = _name(model)
    source = TextSource(Disk(text))
    rows = max(1, min(MOST_ROWS, SCORES_AT_ONCE // (model.length * model.config.vocab_size)))
    made = (_one_hidden if name == PSEUDO else _as_trained)(model, source, rows)
    loss, tokens = _loss(model, made, most_tokens, told)
    if not tokens:
        raise ValueError(f"{text} has no line that can be read, or none with two tokens")
    if not math.isfinite(loss):
        raise ValueError("the model's loss is not finite: it has diverged, or is damaged")
    size = model.tokenizer.num_tokens
    return Result(
        "perplexity",
        (
            Score(name, (math.exp(min(loss / tokens, 700.0)),)),
            Score("loss", (loss / tokens,)),
        ),
        (Baseline("all tokens alike", {name: float(size), "loss": math.log(size)}),),
        {"tokens": tokens, "lines that cannot be read": source.tally.broken},
    )


@torch.no_grad()
def _loss(
    model: Evaluated, made: Iterator[Batch], most_tokens: int, told: Callable[[str, float], None]
) -> tuple[float, int]:
    """Sum of the losses of the tokens, and their number: a mean over batches would weigh the
    tokens of small ones more."""
    net, family = model.whole().eval(), _family(model)
    device = next(net.parameters()).device
    loss, tokens = 0.0, 0
    for batch in made:
        batch = _at_most(batch, most_tokens - tokens)
        loss += float(family.loss_sum(net, batch.to(device)))
        tokens += batch.tokens
        told("perplexity", tokens / most_tokens)
        if tokens >= most_tokens:
            break
    return loss, tokens


def _name(model: Evaluated) -> str:
    """Raises ValueError where it is not known how such a model is to be measured."""
    if model.kind == "masked":
        return PSEUDO
    objective = model.family.objective.kind
    if objective not in NAMES:
        raise ValueError(
            f"its family guesses {objective!r}, of which no perplexity is known here: measure it "
            "by tags or classes"
        )
    return NAMES[objective]


def _family(model: Evaluated) -> Any:
    """How the loss of such a model is computed; for ALBERT only hidden places cost a head, and here
    it tells no order."""
    if model.kind == "masked" and model.config.model_type == "albert":
        return create("families", Choice(name="albert"))
    return model.family


def _at_most(batch: Batch, tokens: int) -> Batch:
    """With its first so many targets."""
    is_target = batch.targets != Batch.IGNORE
    beyond = is_target.flatten().cumsum(0).view_as(is_target) > tokens
    return Batch(batch.ids, batch.targets.masked_fill(beyond, Batch.IGNORE), batch.attention)


def _as_trained(model: Evaluated, source: Source, rows: int) -> Iterator[Batch]:
    documents = source.documents(ORDER)
    return batches(
        documents,
        model.tokenizer,
        model.family.objective,
        length=model.length,
        size=lambda: rows,
        seed=SEED,
    )


def _one_hidden(model: Evaluated, source: Source, rows: int) -> Iterator[Batch]:
    """Each sequence once for each of its tokens, which is hidden in it; special ones never are."""
    for sequence in pack(source.documents(ORDER), model.tokenizer, model.length, framed=True):
        places = hideable(sequence, model.tokenizer)
        for first in range(0, len(places), rows):
            yield hide(sequence, places[first : first + rows], model.tokenizer.mask)


def hideable(sequence: list[int], tokenizer: Tokenizer) -> list[int]:
    return [place for place, token in enumerate(sequence) if token not in tokenizer.special]


def hide(sequence: list[int], places: list[int], mask: int) -> Batch:
    """A row for each place, with the token there hidden."""
    ids = torch.tensor(sequence).repeat(len(places), 1)
    targets = torch.full_like(ids, Batch.IGNORE)
    for row, place in enumerate(places):
        targets[row, place], ids[row, place] = sequence[place], mask
    return Batch(ids, targets, torch.ones_like(ids))
