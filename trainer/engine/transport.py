"""What the round loop needs of a network: `trainer.swarm` over hivemind, or the simulator's.

See `trainer/swarm/peer.py`, `tracker.py` and `averager.py` for what each call does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from torch import Tensor

from trainer.swarm.progress import Standing, View
from trainer.swarm.verdict import Note, Verdict
from trainer.wire import Activity

StateSource = Callable[[], tuple[dict[str, int], list[Tensor]]]
Watch = Callable[[Activity], bool]


class Tracker(Protocol):
    idle: bool

    def view(self) -> View: ...

    def seen(self, round_number: int) -> dict[str, int]: ...

    def publish(self) -> None: ...

    def forget(self, names: Collection[str]) -> None: ...

    def forget_the_silent(self, names: Collection[str]) -> None: ...

    def assume(self, names: Collection[str], round_number: int) -> None: ...

    def refreshed(self, timeout_s: float) -> bool: ...


class Averager(Protocol):
    @property
    def link_mbit_s(self) -> float | None: ...

    def run_round(
        self, offer: Sequence[Tensor], note: Note, others: Collection[str], watch: Watch
    ) -> tuple[Verdict, list[Tensor]]: ...

    def fetch_state(
        self, at_least: int, timeout_s: float, is_wanted: Callable[[], bool]
    ) -> tuple[int, list[Tensor]] | None: ...


class Peer(Protocol):
    peer_id: str
    coordinators: frozenset[str]

    def average(self, tensors: Sequence[Tensor], state_source: StateSource) -> Averager: ...

    def track(self, standing: Callable[[], Standing]) -> Tracker: ...

    def share_state(self, round_number: int) -> None: ...

    def addresses(self) -> tuple[str, ...]: ...

    def tend(self) -> None: ...

    def problem(self) -> str: ...
