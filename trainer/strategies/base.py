"""What a training strategy decides: what peers average, and how they apply the average.

The engine calls six hooks:

    start    a round begins: reset what must not outlive it
    correct  a micro-batch's gradient was added to `ctx.gradient`: edit it
    stepped  that micro-batch is done
    offer    what this peer puts into the average
    accept   the average, after a clean verdict only: the one place where state is written
    joined   the shared state was taken from another peer or a file: go on from it as a newcomer

State is declared, one tensor for each parameter under each name: a newcomer downloads `shared`,
and a checkpoint holds it; `own` never leaves the peer. The moments of the optimizer are among them.
Strategies touch tensors through their methods only, so that these files load no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from trainer.parts import Part

if TYPE_CHECKING:
    from torch import Tensor


class Params(Part):
    """Of a plug-in, as a recipe names them."""


@dataclass
class Context:
    """One round as its strategy sees it.

    `gradient` is the gradient of the summed losses of all target tokens since the last `step`, one
    tensor for each of `params`. `anchor` is what all peers shared when the round began. `step`
    takes one optimizer step along a mean gradient, with the round's learning rate, and zeroes
    `gradient`. `steps`, `samples` and `tokens` count since the round began; `batch_tokens` are the
    newest micro-batch's.
    """

    params: Sequence[Tensor]
    anchor: Sequence[Tensor]
    gradient: Sequence[Tensor]
    step: Callable[[Sequence[Tensor]], None]
    round: int = 0
    learning_rate: float = 0.0
    steps: int = 0
    samples: int = 0
    tokens: int = 0
    batch_tokens: int = 0


@dataclass(frozen=True)
class Offer:
    """`weight` is in target tokens, unless the recipe says otherwise.

    0 makes an empty offer, which changes no average.
    """

    tensors: Sequence[Tensor]
    weight: float
    note: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Member:
    """One of the group behind an average, as all of the group saw it; `is_own`: this peer itself.

    `weight` is what its offer counted by: 0 where that was empty, refused, or `lost`. A lost member
    went silent half-way, so that parts of the average may hold its offer and others not. `steps`
    are the micro-batches it claims, at most its samples; `note` came with its offer.
    """

    weight: float
    steps: int = 0
    note: dict[str, float] = field(default_factory=dict)
    lost: bool = False
    is_own: bool = False


class Source(NamedTuple):
    """Where a rule was published, in words and as an address."""

    words: str
    address: str


class Extra(NamedTuple):
    """Numbers of vectors of the model's size: of state that is `shared`, and of its `own`."""

    shared: int = 0
    own: int = 0


class Strategy:
    """`local` ones step by themselves between averages, so that the moments are each peer's own.

    `formula` is the rule in plain text, in `symbols` and its own, as `source` has it.
    """

    label: ClassVar[str]
    summary: ClassVar[str]
    formula: ClassVar[str]
    source: ClassVar[Source]
    symbols: ClassVar[str] = (
        "x is the model that all share when a round begins, wᵢ device i's own, pᵢ its share of the "
        "weights, r the learning rate, g(w) the gradient of one micro-batch, Kᵢ the device's local "
        "steps."
    )
    local: ClassVar[bool] = False
    vectors: ClassVar[int] = 1  # of the model's size, in one offer
    longest: ClassVar[float] = 10.0  # length of an offer, in usual ones; a longer one is refused
    offers_changes: ClassVar[bool] = False  # as its offer's first tensors: anchor less parameters
    takes_late: ClassVar[bool] = False  # whether a change of an earlier round may be in an average
    uncapped: ClassVar[str] = ""  # why its offers have to weigh what they say
    Params: ClassVar[type[Params]] = Params

    optimizer: Literal["adamw", "sgd"] = "adamw"
    momentum: float = 0.0  # of sgd
    most_steps: int = 0  # micro-batches of one peer in one round; 0: no limit
    most_s: float = 0.0  # seconds that one peer computes in one round; 0: no limit
    most_passes: float = 0.0  # over the samples of a volunteer's own texts; 0: no limit

    def __init__(self, params: Any) -> None:
        self.params = params
        self.shared: dict[str, list[Tensor]] = {}
        self.own: dict[str, list[Tensor]] = {}
        self.told = ""  # what the newest `accept` made of the average, in words

    def extra(self) -> Extra:
        """What it keeps beside the optimizer's moments."""
        return Extra()

    def start(self, ctx: Context) -> None:
        """Nothing to reset."""

    def joined(self) -> None:
        """Nothing of its own that fits an older shared state only."""

    def correct(self, ctx: Context) -> None:
        """Nothing to correct."""

    def stepped(self, ctx: Context) -> None:
        """Nothing to count."""

    def offer(self, ctx: Context) -> Offer:
        raise NotImplementedError

    def accept(self, ctx: Context, mean: Sequence[Tensor], members: Sequence[Member]) -> None:
        raise NotImplementedError


def norm_of(tensors: Iterable[Tensor]) -> float:
    """Length (L2) of all of them as one vector."""
    return sum(float(tensor.double().square().sum()) for tensor in tensors) ** 0.5
