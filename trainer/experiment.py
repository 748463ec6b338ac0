"""An experiment: which strategies are compared with each other, on what kind of data, with whom.

Like a recipe it says all: equal experiments have equal results. Loads no torch.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from trainer.recipe import Choice, Part

TOPICS = 6  # labels of the made-up texts
MOST_RUNS = 60  # a strategy or baseline with one seed each


class Experiment(Part):
    """Everything but `strategies` is the same for all of them."""

    format: Literal["experiment-1"] = "experiment-1"
    strategies: tuple[Choice, ...] = Field(min_length=1, max_length=12)
    split: Literal["iid", "dirichlet", "label", "quantity"] = Field(
        "dirichlet",
        description="iid: everybody has the same kind and amount of text. dirichlet: topics in "
        "shares of their own, the more unequal the smaller alpha. label: few topics each. "
        "quantity: amounts in such shares.",
    )
    alpha: float = Field(
        0.3, gt=0, le=1000, description="Of dirichlet and quantity; 100 is nearly equal."
    )
    topics_each: int = Field(1, ge=1, le=TOPICS, description="Of a volunteer, with split by label.")
    volunteers: int = Field(8, ge=2, le=40)
    slow_percent: int = Field(
        0, ge=0, le=100, description="Volunteers whose computers are ten times slower."
    )
    rounds: int = Field(30, ge=1, le=300)
    first_seed: int = Field(0, ge=0, lt=2**31 - 10)
    seeds: int = Field(
        3, ge=1, le=5, description="Each runs with so many: one result alone may be luck."
    )
    baselines: bool = Field(
        True, description="Each volunteer alone, and all texts on one machine, for comparison."
    )
    same_steps: bool = Field(
        False, description="Plain SGD for every strategy with local steps: only the rule differs."
    )

    @model_validator(mode="after")
    def takes_a_while_at_most(self) -> Experiment:
        names = [choice.model_dump_json() for choice in self.strategies]
        if len(set(names)) < len(names):
            raise ValueError("strategies: two of them are the same")
        if self.num_runs > MOST_RUNS:
            raise ValueError(
                f"strategies x seeds make {self.num_runs} runs, and {MOST_RUNS} are the most"
            )
        return self

    @property
    def num_runs(self) -> int:
        return (len(self.strategies) + 2 * self.baselines) * self.seeds

    @property
    def num_topics(self) -> int:
        """By label there are no more than somebody has."""
        return min(TOPICS, self.volunteers * self.topics_each) if self.split == "label" else TOPICS

    def every_seed(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    def split_in_words(self) -> str:
        return {
            "iid": "texts of the same kind and amount for everybody",
            "dirichlet": f"topics split by Dirichlet({self.alpha:g})",
            "label": f"{self.topics_each} of {self.num_topics} topics for each volunteer",
            "quantity": f"amounts split by Dirichlet({self.alpha:g})",
        }[self.split]
