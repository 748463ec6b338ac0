"""The recipe: all a peer must know to take part. Frozen; its hash is in the swarm's name."""

from __future__ import annotations

import hashlib
import json
from math import ceil
from typing import Any, Literal

from pydantic import Field, model_validator

from trainer.parts import Base as Base
from trainer.parts import Choice as Choice
from trainer.parts import DataSet as DataSet
from trainer.parts import File as File
from trainer.parts import Part as Part
from trainer.parts import Text as Text
from trainer.parts import Tokenizer as Tokenizer
from trainer.wire import Slug


class Optimizer(Part):
    """The learning rate is a function of the round: linear warm-up, then the schedule.

    LAMB gives each parameter a step of its own length, for batches of thousands of samples.
    """

    kind: Literal["adamw", "lamb"] = "adamw"
    learning_rate: float = Field(1e-3, gt=0, le=1)
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    warmup_rounds: int = Field(10, ge=0)
    total_rounds: int = Field(1000, ge=1)
    weight_decay: float = Field(0.01, ge=0, le=1)
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.98, ge=0, lt=1)
    clip_norm: float = Field(1.0, gt=0)


# Of one value on the wire; int8 has one scale of 4 bytes for each 128 values.
CODEC_BYTES = {"fp32": 4.0, "fp16": 2.0, "int8": 1 + 4 / 128}
MOST_CHOSEN = 64  # for one round: their names travel in each note


class Round(Part):
    """One optimizer step of the swarm. Samples are sequences of `Recipe.sequence_length` tokens."""

    target_samples: int = Field(256, ge=1, le=10**8)
    deadline_s: float = Field(
        60.0, ge=2, le=86_400, description="A round ends by then in any case."
    )
    matchmaking_s: float = Field(3.0, ge=1, le=120)
    averaging_s: float = Field(60.0, ge=5, le=3600, description="Longest all-reduce.")
    codec: Literal["fp32", "fp16", "int8"] = Field(
        "fp16", description="How offers and averages travel; states always travel as fp32."
    )
    averaged_by: Literal["peers", "coordinator"] = Field(
        "peers",
        description="Peers share the work, the faster links more of it. Coordinator: devices only "
        "send, and it averages alone, which costs it 2 x devices x the model's bytes a round.",
    )
    checkpoint_every: int = Field(20, ge=1)

    def enough_samples(self) -> int:
        """A peer that holds so many adds no more, and waits for the others."""
        return 2 * self.target_samples

    def most_samples(self) -> int:
        """No peer can hold more: enough, and one micro-batch. A larger claim is not believed."""
        return 3 * self.target_samples


class Participation(Part):
    """Which devices train in a round, and how many it needs (`trainer/swarm/selection.py`)."""

    chosen_by: Literal["all", "lot", "speed"] = Field(
        "all",
        description="Who trains in a round. Lot: some of the devices, drawn anew for each round. "
        "Speed: the same, but a device that brought more in the last rounds, because it was there "
        "and is fast, has better chances. The others wait, and take the result.",
    )
    share: float = Field(
        1.0, gt=0, le=1, description="Of the devices, for lot and speed; 64 devices at most."
    )
    least_members: int = Field(
        1,
        ge=1,
        le=64,
        description="A round that has results of fewer devices is not applied: they wait for more.",
    )
    most_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="No device weighs more than this share of a round, however much data it has; "
        "where there are too few for that, all weigh the same. 1: each as much as it has.",
    )
    late_rounds: int = Field(
        0,
        ge=0,
        le=20,
        description="A result that misses its round by so many at most is taken with the next one, "
        "and weighs 1/sqrt(1 + rounds late) of it. 0: it is refused. For FedAvg, FedProx, DiLoCo.",
    )
    done_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="A round of limited local steps ends once this share of its devices is "
        "done; those that are slower hand in what they have. 1: all, or the deadline.",
    )

    @model_validator(mode="after")
    def has_a_choice(self) -> Participation:
        if self.chosen_by == "all" and self.share < 1:
            raise ValueError(
                f"share ({self.share:g}) is of devices that are chosen, and all are: "
                "set it to 1 or chosen_by to lot or speed"
            )
        return self

    def number_chosen(self, members: int) -> int:
        """Of so many devices; enough for a round wherever there are."""
        wanted = max(ceil(self.share * members - 1e-9), self.least_members)
        return min(wanted, members, MOST_CHOSEN)

    def number_done(self, chosen: int) -> int:
        """Of so many that train, those that end a round."""
        return max(ceil(self.done_share * chosen - 1e-9), self.least_members)


class Finish(Part):
    """The collaboration ends by itself when one of these holds. 0 and None: this rule is off."""

    rounds: int = Field(0, ge=0)
    samples: int = Field(0, ge=0)
    held_out_loss: float | None = Field(None, ge=0)
    patience_rounds: int = Field(0, ge=0, description="Rounds without a lower held-out loss.")


class Recipe(Part):
    format: Literal[1] = 1
    collaboration: Slug
    family: Choice
    strategy: Choice
    tokenizer: Tokenizer
    texts: tuple[Text, ...] = Field(min_length=1, max_length=32)
    held_out: Text | None = None
    sequence_length: int = Field(128, ge=8, le=8192)
    micro_batch: int | None = Field(
        None,
        ge=1,
        le=4096,
        description="Sequences a device handles at once; None: each finds what takes it a second.",
    )
    precision: Literal["fp32", "mixed"] = Field(
        "fp32",
        description="Mixed: a device multiplies matrices in 16 bits where that is faster for it "
        "(bf16, or fp16), which takes less memory; values and averages have 32 bits always.",
    )
    seed: int = Field(0, ge=0, lt=2**31)
    optimizer: Optimizer = Optimizer()
    round: Round = Round()
    participation: Participation = Participation()
    finish: Finish = Finish()
    base: Base | None = None
    adapter: Choice | None = None

    @model_validator(mode="after")
    def fits_together(self) -> Recipe:
        if self.micro_batch and self.round.target_samples < self.micro_batch:
            raise ValueError("round.target_samples is smaller than micro_batch")
        if self.optimizer.warmup_rounds > self.optimizer.total_rounds:
            raise ValueError("optimizer.warmup_rounds is larger than optimizer.total_rounds")
        if sum(text.kind == "private" for text in self.texts) > 1:
            raise ValueError("texts: a volunteer names one place of their own, so one is private")
        if self.held_out and self.held_out.kind == "private":
            raise ValueError("held_out is the coordinator's, who has no private text")
        if self.adapter and not self.base:
            raise ValueError("adapter: it adapts a base, and the recipe names none")
        if self.base and self.base.precision != "fp32" and not self.adapter:
            raise ValueError(
                f"base.precision {self.base.precision}: only weights that do not train can be held "
                "so; choose an adapter, or fp32"
            )
        return self

    @property
    def is_private(self) -> bool:
        """Whether it trains on volunteers' own texts, which nobody else may see."""
        return any(text.kind == "private" for text in self.texts)

    def canonical(self) -> str:
        """JSON with sorted keys and no spaces: the text that is hashed.

        What a recipe does without leaves no trace, as if there were no such thing yet.
        """
        document: dict[str, Any] = self.model_dump(mode="json")
        texts = [text or {} for text in (*document["texts"], document["held_out"])]
        for part, name, without in (
            *((text, "dataset", None) for text in texts),
            *((text.get("dataset") or {}, "revision", "") for text in texts),
            (document["optimizer"], "kind", "adamw"),
            (document, "precision", "fp32"),
            (document["base"] or {}, "stack", None),
            *((document, part, None) for part in ("base", "adapter")),
        ):
            if part.get(name, ...) == without:
                del part[name]
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def sha256(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def swarm_id(self) -> str:
        """Prefix of all DHT keys and RPC names; peers with another recipe never meet."""
        return f"{self.collaboration}-{self.sha256()[:12]}"
