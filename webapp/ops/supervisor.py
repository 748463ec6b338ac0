"""The whole site in one terminal: what `manage.py up` starts, in which order, and how it ends."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from webapp.collaborations.models import Collaboration
from webapp.core.checks import PUBLIC, how_to_widen, reach
from webapp.ops import organiser, programs, static_files, volunteer
from webapp.ops.program import Program, say
from webapp.recipes import ready
from webapp.recipes.opening import open_ready

READY_S = 120.0
# Peers still report to the site while they end; everything needs the broker.
STOP_ORDER = (("volunteers", "coordinator"), ("web", "worker"), ("valkey",))
Result = TypeVar("Result")


class Stopped(Exception):
    """A signal came while something was awaited."""


@dataclass(frozen=True)
class Switches:
    """`recipe`: of which a collaboration is opened; "" for none. `volunteers`: devices for it."""

    recipe: str = "demo-causal"
    offline: bool = False
    volunteers: int = 1


class Supervisor:
    def __init__(self, switches: Switches) -> None:
        self.switches = switches
        self.stopping = asyncio.Event()
        self.signalled = threading.Event()  # the same, for what a thread waits for
        self.programs: list[Program] = []
        self.launchers: list[Path] = []
        self.credentials: organiser.Credentials | None = None
        self._keepers: list[asyncio.Task[None]] = []

    async def run(self) -> int:
        """Until a signal: 0. 1 when the site could not be brought up; the reason is printed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal)
        code = 0
        try:
            await self._bring_up()
            await self.stopping.wait()
        except Stopped:
            pass
        except Exception as error:
            self._show_credentials()
            say("up", f"The site could not start: {error}")
            code = 1
        await self._bring_down()
        return code

    async def _bring_up(self) -> None:
        began = time.monotonic()
        if reach() != PUBLIC:
            say("up", f"Reachable from {reach()}. {how_to_widen()}")
        if not settings.VALKEY_URL:
            await self._start_and_await(programs.valkey())
        collecting = asyncio.create_task(asyncio.to_thread(static_files.collect_if_changed))
        await self._or_stop(asyncio.to_thread(self._prepare_database))
        await self._or_stop(collecting)
        web = programs.web()
        for program in (programs.worker(), programs.coordinator()):
            self._start(program)
        await self._start_and_await(web)
        for launcher in self.launchers:
            self._start(programs.volunteer(launcher))
        took = time.monotonic() - began
        self._show_credentials()
        say("up", f"Ready after {took:.1f} s: open {settings.SITE_URL} (Ctrl-C stops everything)")

    def _prepare_database(self) -> None:
        """Migrates and seeds. Runs in a thread: Django's ORM blocks."""
        try:
            call_command("migrate", verbosity=0, interactive=False)
            self.credentials = organiser.make_first()
            if self.switches.recipe:
                self._open_recipe()
        finally:
            connections.close_all()

    def _open_recipe(self) -> None:
        """What an earlier version opened under its name goes on as it is."""
        wanted = self.switches
        found = ready.read(wanted.recipe, offline=wanted.offline)
        slug = found.recipe["collaboration"]
        collaboration = Collaboration.objects.filter(slug=slug).first()
        if collaboration is None:
            collaboration, _ = open_ready(
                found,
                by=organiser.first(),
                tell=lambda words: say("up", words),
                stopping=self.signalled,
            )
        numbers = range(1, wanted.volunteers + 1)
        self.launchers = [volunteer.prepare(collaboration, number) for number in numbers]

    def _show_credentials(self) -> None:
        """Never in a log file."""
        if self.credentials is not None:
            say("up", str(self.credentials))
        self.credentials = None

    def _start(self, program: Program) -> None:
        self.programs.append(program)
        self._keepers.append(asyncio.create_task(program.keep_running(self.stopping)))

    async def _start_and_await(self, program: Program) -> None:
        self._start(program)
        try:
            await self._or_stop(asyncio.wait_for(program.is_ready.wait(), READY_S))
        except TimeoutError:
            raise TimeoutError(
                f"{program.name} did not answer within {READY_S:.0f} s; its lines are above "
                f"and in {settings.DATA_DIR / 'logs' / program.name}.log."
            ) from None

    async def _or_stop(self, work: Awaitable[Result]) -> Result:
        """The result of `work`, or Stopped when a signal comes first."""
        working = asyncio.ensure_future(work)
        signalled = asyncio.create_task(self.stopping.wait())
        await asyncio.wait({working, signalled}, return_when=asyncio.FIRST_COMPLETED)
        signalled.cancel()
        if not working.done():
            working.cancel()
            raise Stopped
        return working.result()

    def _on_signal(self) -> None:
        if self.stopping.is_set():
            say("up", "killing everything")
            for program in self.programs:
                program.kill_group()
        self.stopping.set()
        self.signalled.set()

    async def _bring_down(self) -> None:
        self.stopping.set()
        began = time.monotonic()
        say("up", "stopping")
        for names in STOP_ORDER:
            ending = [one for one in self.programs if _group(one.name) in names]
            await asyncio.gather(*(program.stop() for program in ending))
        await asyncio.gather(*self._keepers, return_exceptions=True)
        say("up", f"stopped in {time.monotonic() - began:.1f} s")
        sys.stdout.flush()


def _group(name: str) -> str:
    return "volunteers" if name.startswith("volunteer") else name
