"""Parts of a recipe whose plain values the organiser's form asks for, in its order."""

from __future__ import annotations

from pydantic import BaseModel

from trainer.recipe import Finish, Optimizer, Participation, Round

PARTS: dict[str, type[BaseModel]] = {
    "optimizer": Optimizer,
    "round": Round,
    "participation": Participation,
    "finish": Finish,
}
TITLES = {
    "optimizer": "Learning rate",
    "round": "Rounds",
    "participation": "Who takes part in a round",
    "finish": "When to finish",
}
