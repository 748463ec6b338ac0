"""What the person at the machine sees: one panel that is redrawn, or plain lines for logs."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trainer.agent.keys import Keys, terminal
from trainer.agent.screen import Screen
from trainer.agent.wishes import Wishes
from trainer.wire import Activity, Progress, Receipt, Wish

if TYPE_CHECKING:
    from trainer.engine.own_check import OwnLosses
    from trainer.engine.personal import Personal

WORDS = {
    Activity.STARTING: "starting",
    Activity.CATCHING_UP: "catching up with the others",
    Activity.TRAINING: "training",
    Activity.EVALUATING: "evaluating",
    Activity.MATCHMAKING: "looking for partners",
    Activity.AVERAGING: "averaging with the others",
    Activity.WAITING: "waiting",
    Activity.PAUSED: "paused",
    Activity.LEAVING: "leaving",
}
PLAIN_EVERY_S = 30.0
SHOW_CURSOR = b"\x1b[?25h"


class View:
    """Facts come in from any thread. `open` and `close` from the main thread.

    `label` stands before each line where several programs share one terminal.
    """

    def __init__(
        self, title: str, log_file: Path | None, out: TextIO | None = None, *, label: str = ""
    ) -> None:
        self.title, self.log_file, self.label = title, log_file, label
        self._out = Screen(out or sys.stdout)
        self._lock = threading.RLock()
        self.progress: Progress | None = None
        self.now = "starting"
        self.link = ""
        self.samples = self.rounds = 0
        self.last_round = self.own = ""
        self.reading: Callable[[], str] = lambda: ""  # which part of the text, in words

    def open(self) -> None:
        self.say(self.title)
        if self.log_file:
            self.say(f"Log file: {self.log_file}")

    def close(self) -> None:
        """Nothing to take down."""

    def heed(self, wishes: Wishes) -> None:
        """Where no key ends a pause of an earlier session, it ends with this start."""
        if wishes.is_paused_here:
            wishes.volunteer(Wish.RUN)
            self.say("It was paused when it stopped; no key could end that here, so it goes on.")

    def give_back(self) -> None:
        """Leaves the terminal usable, where there is no time for `close`."""

    def say(self, line: str) -> None:
        """Something that should stay on the screen."""
        with self._lock:
            self._out.write(f"{time.strftime('%H:%M:%S')} {self.label}{line}\n")
            self._out.flush()

    def doing(self, words: str) -> None:
        """What it does now, with its reason; shown when it changes."""
        if words != self.now:
            self.now = words
            self.say(words)

    def linked(self, trouble: str) -> None:
        """State of the link to the site: empty when it is well."""
        if trouble != self.link:
            self.link = trouble
            self.say(trouble or "Connected to the site.")

    def show_progress(self, progress: Progress) -> None:
        self.progress = progress
        words = WORDS[progress.activity]
        self.doing(f"{words}: {progress.reason}" if progress.reason else words)

    def show_receipt(self, receipt: Receipt) -> None:
        verdict = receipt.verdict
        if receipt.accepted:
            self.samples += receipt.samples
            self.rounds += 1
        loss = f", loss {verdict.loss:.3f}" if verdict.loss is not None else ""
        peers = "1 peer" if verdict.members == 1 else f"{verdict.members} peers"
        own = f"{receipt.samples:,} samples of this device"
        credited = "counted" if receipt.accepted else f"not counted: {receipt.reason}"
        carried = f"; it averaged {receipt.share:.0%} of the model for all" if receipt.share else ""
        self.last_round = (
            f"round {receipt.round}: {verdict.outcome.value}, {peers}, "
            f"{verdict.samples:,} samples{loss}; {own} {credited}{carried}"
        )
        self.say(self.last_round)

    def show_own(self, told: OwnLosses | Personal) -> None:
        self.own = told.in_words()
        self.say(f"your own texts: {self.own}")


def link_words(progress: Progress) -> str:
    """Speed of the link, and what it carries for all; empty while neither is known."""
    known = []
    if progress.link_mbit_s is not None:
        known.append(f"{progress.link_mbit_s:,.3g} Mbit/s measured")
    if progress.share is not None:
        share = f"{progress.share:.0%} of the averaging" if progress.share else "no averaging"
        known.append(f"carries {share} for all")
    return ", ".join(known)


class PlainView(View):
    """Lines; while nothing changes, one every half minute."""

    _shown_at = 0.0

    def show_progress(self, progress: Progress) -> None:
        super().show_progress(progress)
        if time.monotonic() - self._shown_at > PLAIN_EVERY_S:
            self._shown_at = time.monotonic()
            self.say(
                f"round {progress.round}: {progress.samples:,} samples here, "
                f"{progress.swarm_samples:,} in the swarm, {progress.samples_per_s:.1f} a second"
            )
            if link := link_words(progress):
                self.say(f"link: {link}")
            if reading := self.reading():
                self.say(f"reading: {reading}")


class RichView(View):
    """The panel at the bottom of the terminal; lines that stay scroll above it.

    While it is open, what libraries print goes into the log file instead of through the panel.
    """

    _keys: Keys | None = None
    _wishes: Wishes

    def open(self) -> None:
        self._screen = Screen(os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace"))
        self._console = Console(file=cast(TextIO, self._screen))
        self._stderr = os.dup(2)
        with (self.log_file or Path(os.devnull)).open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        self._live = Live(
            get_renderable=self._panel,
            console=self._console,
            refresh_per_second=1,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def heed(self, wishes: Wishes) -> None:
        self._wishes = wishes
        if (descriptor := terminal()) is None:
            super().heed(wishes)
            return
        self._keys = Keys(descriptor, self._pressed)
        self._keys.open()

    def _pressed(self, key: str) -> None:
        if key in "pP":
            self._wishes.toggle_pause()
            self._live.refresh()

    def give_back(self) -> None:
        """Signal handlers call it: nothing is written through what they may have interrupted."""
        with suppress(OSError):  # it was closed
            os.write(self._screen.fileno(), SHOW_CURSOR)
        if self._keys:
            self._keys.close()

    def close(self) -> None:
        if self._keys:
            self._keys.close()
            self._keys.wait()
        self._live.stop()
        sys.stdout.flush()
        os.dup2(self._screen.fileno(), 1)
        os.dup2(self._stderr, 2)
        os.close(self._stderr)
        self._screen.close()

    def say(self, line: str) -> None:
        self._console.print(Text(f"{time.strftime('%H:%M:%S')} {line}"))

    def doing(self, words: str) -> None:
        self.now = words

    def linked(self, trouble: str) -> None:
        self.link = trouble

    def _panel(self) -> Panel:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column()
        table.add_row("Now", Text(self.now))
        if progress := self.progress:
            table.add_row(
                "This round",
                f"{progress.samples:,} samples here, {progress.swarm_samples:,} in the swarm",
            )
            table.add_row("Speed", f"{progress.samples_per_s:.1f} samples a second")
            if link := link_words(progress):
                table.add_row("Link", link)
        if self.own:
            table.add_row("Your texts", Text(self.own))
        if reading := self.reading():
            table.add_row("Reading", Text(reading))
        table.add_row("Counted", f"{self.samples:,} samples in {self.rounds:,} rounds")
        if self.last_round:
            table.add_row("Last", Text(self.last_round))
        table.add_row("Site", Text(self.link or "connected"))
        keys = ""
        if self._keys:
            paused = self._wishes.is_paused_here
            keys = "You paused this device: p goes on. " if paused else "p pauses. "
        foot = Text(f"{keys}Ctrl-C stops cleanly. Log file: {self.log_file}", style="dim")
        return Panel(Group(table, foot), title=Text(self.title), border_style="dim")
