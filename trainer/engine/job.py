"""What the engine is given and what it talks to; the agent and the coordinator provide both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trainer.data.shards import Shards
from trainer.passport import Passport, RevocationList
from trainer.recipe import Recipe
from trainer.wire import Body, Control, Progress, Role

if TYPE_CHECKING:
    from trainer.engine.own_check import OwnLosses
    from trainer.engine.personal import Personal


@dataclass(frozen=True)
class Job:
    """One peer's part in one collaboration.

    `folder` is private to this device and collaboration: `identity.key` (peer id, passport key
    and owner of DHT records in one RSA key) and what must outlive a restart. `texts` are the local
    files of `recipe.texts`, in order; None where the text is streamed from its URL. `base` is the
    folder of `recipe.base`.
    `num_processes` share each micro-batch, and split what `sharding.WAYS` calls `split`.
    `revocations` is the site's newest list and `heard_at` when it last heard a device ask for a
    part of a text, by its clock: a coordinator passes both on. `clock_offset_s` is site time minus
    device time. `shards` None: it reads all of the texts, in an order of its own.
    `tell_own` hears of each round what it did for the volunteer's own held-out texts, where the
    recipe trains on such, and of a model of their own at the end; `shares_own`: the site may hear
    the loss on them, too.
    """

    recipe: Recipe
    role: Role
    folder: Path
    tokenizer: Path
    texts: tuple[Path | None, ...]
    held_out: Path | None
    checkpoint: Path | None
    passport: Callable[[], Passport]
    authority: str
    bootstrap: tuple[str, ...]
    clock_offset_s: float = 0.0
    num_threads: int = 1
    num_processes: int = 1
    split: str = "optimizer"
    listen_address: str = "/ip4/0.0.0.0/tcp/0"
    announce_host: str = ""
    checkpoint_folder: Path | None = None
    revocations: Callable[[], RevocationList | None] = lambda: None
    heard_at: Callable[[], float | None] = lambda: None
    shards: Shards | None = None
    tell_own: Callable[[OwnLosses | Personal], None] | None = None
    shares_own: bool = False
    base: Path | None = None

    def own_text(self) -> Path | None:
        """Where the volunteer's own texts are, if the recipe trains on such and they have any."""
        named = zip(self.recipe.texts, self.texts, strict=True)
        return next((path for text, path in named if text.kind == "private"), None)


class Outbox(Protocol):
    """Where the engine reports to. Neither call blocks on the network or raises for it.

    `progress` is called on a thread of the engine's own, `report` on the one that runs it.
    """

    def progress(self, message: Progress) -> None: ...

    def report(self, body: Body) -> None: ...


class Wishes(Protocol):
    """What site and volunteer want now; read between micro-batches."""

    def current(self) -> Control: ...
