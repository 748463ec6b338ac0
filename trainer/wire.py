"""Every message between a peer and the site, in both directions, under one version number.

An agent opens one websocket, sends `Hello` and then `Progress` (at most one a second, newest
wins) and numbered `Report`s, which it repeats until an `Ack` covers them. The site takes each
`(session, seq)` once. Times are seconds since the epoch, of the clock named in the field.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from trainer.measures import Count, Length, Line, Seconds, SessionId, Sha256, Share, Slug
from trainer.words import Activity, LeaveCause, Outcome, Role, Wish

WIRE_VERSION = 1
OLDEST_WIRE_VERSION = 1
MAX_MESSAGE_BYTES = 64 * 1024


class Message(BaseModel):
    """Base of all messages: frozen, no unknown keys, no NaN and no infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Machine(Message):
    """Facts about a device that its owner sees; none of them is public."""

    system: Line = ""
    processor: Line = ""
    accelerator: Line = "CPU"
    num_cores: int = Field(1, ge=1, le=4096)
    memory_bytes: Count = 0
    python: Line = ""


# ---------------------------------------------------------------- agent to site
class Hello(Message):
    """First message on the socket. `session` is chosen by the agent and survives reconnects."""

    kind: Literal["hello"] = "hello"
    version: int = Field(ge=0, le=10**6)
    agent_version: Line
    session: SessionId
    collaboration: Slug
    role: Role = Role.PEER
    machine: Machine = Machine()


class Progress(Message):
    """Newest state of one peer. Never stored, never acknowledged.

    `loss_sum` is the sum of the losses of `tokens` target tokens, both over this round so far.
    `link_mbit_s` is the measured speed of its link, up or down, whichever is less; `share` the part
    of the last average that it carried for all, and may expect to carry again. None: not known.
    """

    kind: Literal["progress"] = "progress"
    round: Count
    samples: Count = 0
    tokens: Count = 0
    loss_sum: float = 0.0
    samples_per_s: float = Field(0.0, ge=0, le=10**9)
    swarm_samples: Count = 0
    activity: Activity
    reason: Line = ""
    link_mbit_s: float | None = Field(None, ge=0, le=10**9)
    share: Share | None = None


class Refusal(Message):
    """An offer that was left out of an average. `reason` goes on after "its offer"."""

    peer: Line
    reason: Line


class VerdictSummary(Message):
    """What one round made of its offers, as every member saw it.

    `loss` is the mean over `tokens` target tokens of one and the same round. `members` counts
    peers that offered samples; the coordinator's empty offer is not one. `asked` are those that
    were chosen to train in it, None where all might. `mean_norm` is the length of the average, the
    same for all; `told` the strategy's state in words; `missed` how far an average is off (LoRA).
    """

    round: Count
    outcome: Outcome
    members: Count
    samples: Count
    tokens: Count
    loss: float | None = None
    duration_s: Seconds = 0.0
    bytes_in: Count = 0
    bytes_out: Count = 0
    lost: tuple[Line, ...] = Field((), max_length=64)
    refused: tuple[Refusal, ...] = Field((), max_length=64)
    reason: Line = ""
    asked: Count | None = None
    mean_norm: Length | None = None
    told: Line = ""
    missed: float | None = Field(None, ge=0)


class Receipt(Message):
    """One peer's accepted or refused offer: what credit is made of.

    `weight` is its part of the weight of all offers in the average, `share` the part of the vector
    that it averaged for all; None where there was no average. `own_loss` is that of the model after
    this round on texts of the device's owner, per target token, where the owner agreed to tell it.
    `steps` are the micro-batches in the offer, `norm` its length, and `drift` how far from the
    anchor they had led the device; None: the agent does not tell, or had nothing to offer.
    """

    kind: Literal["receipt"] = "receipt"
    round: Count
    samples: Count
    tokens: Count
    accepted: bool
    reason: Line = ""
    compute_s: Seconds = 0.0
    share: Share | None = None
    weight: Share | None = None
    own_loss: float | None = None
    steps: Count | None = None
    norm: Length | None = None
    drift: Length | None = None
    verdict: VerdictSummary


class RoundSeen(Message):
    """The coordinator's record of a round; it overrides what receipts say of the same round."""

    kind: Literal["round"] = "round"
    verdict: VerdictSummary


class HeldOut(Message):
    """Loss on held-out text, per target token, measured by the coordinator."""

    kind: Literal["held_out"] = "held_out"
    round: Count
    loss: float
    tokens: Count


class CheckpointWritten(Message):
    """A complete file under the coordinator's checkpoint folder; the site checks the hash."""

    kind: Literal["checkpoint"] = "checkpoint"
    round: Count
    filename: str = Field(pattern=r"^[A-Za-z0-9._-]{1,120}$")
    sha256: Sha256
    size_bytes: Count
    loss: float | None = None


class SwarmOpened(Message):
    """Where newcomers find the coordinator's peer."""

    kind: Literal["swarm_opened"] = "swarm_opened"
    peer_id: Line
    addresses: tuple[Line, ...] = Field(max_length=16)


class Bye(Message):
    kind: Literal["bye"] = "bye"
    cause: LeaveCause
    reason: Line = ""


Body = Annotated[
    Receipt | RoundSeen | HeldOut | CheckpointWritten | SwarmOpened | Bye,
    Field(discriminator="kind"),
]


class Report(Message):
    """A numbered body: `seq` starts at 1 in each session and grows by one. `at` is device time."""

    kind: Literal["report"] = "report"
    seq: int = Field(ge=1, le=10**12)
    at: float = Field(ge=0, le=10**11)
    body: Body


# ---------------------------------------------------------------- site to agent
class Control(Message):
    """What the site wants of the agent now, and why, in words for its screen."""

    kind: Literal["control"] = "control"
    wish: Wish
    reason: Line = ""
    cause: LeaveCause | None = None


class Welcome(Message):
    """Answer to `Hello`. `stored_seq` is the highest seq below which everything is stored."""

    kind: Literal["welcome"] = "welcome"
    version: int = WIRE_VERSION
    server_time: float
    stored_seq: Count
    control: Control


class Ack(Message):
    """All reports with a number up to and including `seq` are stored."""

    kind: Literal["ack"] = "ack"
    seq: Count


class Refused(Message):
    """The site will not take this agent. `retry_after_s` None: do not come back by itself."""

    kind: Literal["refused"] = "refused"
    reason: Line
    next_step: Line = ""
    retry_after_s: Seconds | None = None
    cause: LeaveCause | None = None


FromAgent = Annotated[Hello | Progress | Report, Field(discriminator="kind")]
FromSite = Annotated[Welcome | Ack | Control | Refused, Field(discriminator="kind")]
_from_agent: TypeAdapter[Hello | Progress | Report] = TypeAdapter(FromAgent)
_from_site: TypeAdapter[Welcome | Ack | Control | Refused] = TypeAdapter(FromSite)


def read_from_agent(text: str | bytes) -> Hello | Progress | Report:
    """Raises pydantic.ValidationError (a ValueError) on anything that is not one of ours."""
    return _from_agent.validate_json(text)


def read_from_site(text: str | bytes) -> Welcome | Ack | Control | Refused:
    """Raises pydantic.ValidationError (a ValueError) on anything that is not one of ours."""
    return _from_site.validate_json(text)


def version_problem(version: int) -> str | None:
    """Why an agent of this wire version cannot take part, in words, or None."""
    if version < OLDEST_WIRE_VERSION:
        return (
            f"This agent speaks version {version}; the site needs at least {OLDEST_WIRE_VERSION}."
        )
    if version > WIRE_VERSION:
        return f"This agent speaks version {version}; the site knows up to {WIRE_VERSION}."
    return None
