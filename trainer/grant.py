"""What a device gets over HTTP before its websocket: a token, then the right to take part."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from trainer.passport import Passport
from trainer.recipe import Recipe
from trainer.wire import Control, Count, Line, Machine, Message, Seconds, Sha256, Slug


class EnrolRequest(Message):
    """POST /api/v1/device/enrol. The code is good for one exchange within 24 h."""

    code: str = Field(min_length=20, max_length=100)
    machine: Machine = Machine()


class Enrolled(Message):
    """`token` is shown once: the site keeps only its hash."""

    token: str
    device: str = Field(max_length=64)
    name: Line
    collaboration: Slug | Literal[""] = Field(description="Empty: the site gives it one.")


class PlacementRequest(Message):
    """POST /api/v1/device/placement: what the device is now."""

    machine: Machine = Machine()


class Placed(Message):
    """Which collaboration the site gives the device, and why.

    `collaboration` is empty when there is none for it now.
    """

    collaboration: Slug | Literal[""]
    title: Line
    reason: Line


class SecondStart(Message):
    """POST /api/v1/device/again: a launcher with this code was started on an enrolled device."""

    code: str = Field("", max_length=100)


class KnownDevice(Message):
    """The device that the bearer token stands for."""

    device: str = Field(max_length=64)
    name: Line


class JoinRequest(Message):
    """POST /api/v1/device/collaborations/{slug}/join, with the device token as bearer.

    `peer_key` is the RSA public key of this device in this collaboration, OpenSSH format.
    """

    wire_version: int = Field(ge=0, le=10**6)
    agent_version: Line
    peer_key: str = Field(max_length=1000, pattern=r"^ssh-rsa [A-Za-z0-9+/=]+$")


class Checkpoint(Message):
    round: Count
    sha256: Sha256
    size_bytes: Count
    filename: Line


class JoinGrant(Message):
    """All an agent needs. Files are at `<site>/artifacts/<sha256>/<filename>`, ranges allowed."""

    recipe: Recipe
    recipe_sha256: Sha256
    passport: Passport
    authority: str = Field(max_length=100)
    bootstrap: tuple[Line, ...]
    checkpoint: Checkpoint | None
    control: Control
    websocket: Line = Field(description="Path of the device websocket on the site.")
    server_time: float


class DialBackRequest(Message):
    """POST /api/v1/device/dialback: "something listens on this port and says this word"."""

    port: int = Field(ge=1024, le=65535)
    word: str = Field(pattern=r"^[0-9a-f]{32}$")


class DialBack(Message):
    """Whether the site heard the word there. `address` is the one it sees the device at."""

    reachable: bool
    address: Line
    reason: Line


class ShardRequest(Message):
    """POST /api/v1/device/collaborations/{slug}/shards: what the device reads of one text.

    `shard` is the one it holds, None: none, in its pass after `passes`; `position` and `skip` how
    far it is in it; `finished`: it has read it to the end and wants the next; `leaving`: it wants
    none any more.
    """

    recipe_sha256: Sha256
    text: int = Field(ge=0, lt=32, description="Which of the recipe's texts, from 0.")
    shard: int | None = Field(None, ge=0, lt=10**6)
    passes: Count | None = None
    position: Count = 0
    skip: Count = 0
    finished: bool = False
    leaving: bool = False


class Lease(Message):
    """The right to read one shard of a text: no other device has it for `valid_s` from now.

    A shard is read in the order of its `passes`, the times it was read before: from `position` on,
    and of the document that comes then, after `skip` token ids.
    """

    shard: int = Field(ge=0)
    num_shards: int = Field(ge=1)
    passes: Count
    position: Count
    skip: Count = 0
    valid_s: Seconds
    renew_s: Seconds = Field(gt=0)


SILENCE_S = 120.0  # two renewals of a lease: devices that are there do not all miss both


class Heard(Message):
    """GET /api/v1/device/collaborations/{slug}/shards: when a device last asked for a part.

    Silence before that of more than `SILENCE_S` counts as the site's own absence: the request that
    ends it renews all leases that had not run out when it began. So a lease can only go to another
    device after it ran out, and while devices ask more often than that. None: nobody has asked yet.
    """

    heard_at: float | None


class ShardAnswer(Message):
    """`lease` None: there is none for this device now, for `reason`."""

    lease: Lease | None
    reason: Line = ""


class Evaluated(Message):
    """What a device measured of one part of the held-out text; an empty part has no tokens."""

    checkpoint: Sha256
    part: int = Field(ge=0, lt=1000)
    loss_sum: float = Field(ge=0, description="Of the losses of all target tokens.")
    tokens: Count
    compute_s: Seconds = 0.0


class EvaluationRequest(Message):
    """POST /api/v1/device/collaborations/{slug}/evaluation: asks for the next part to evaluate.

    `done`: the one before it, which counts once, and only for who holds its lease.
    """

    recipe_sha256: Sha256
    done: Evaluated | None = None


class EvaluationTask(Message):
    """Part `part` of `num_parts` of the held-out text, with the parameters of a checkpoint. No
    other device has it for `valid_s` from now.
    """

    checkpoint: Checkpoint
    part: int = Field(ge=0)
    num_parts: int = Field(ge=1)
    valid_s: Seconds


class EvaluationAnswer(Message):
    """`task` None: there is none for this device now, for `reason`."""

    task: EvaluationTask | None
    reason: Line = ""


class Clock(Message):
    """GET /api/v1/clock: the site's time, for measuring a device's offset."""

    now: float
