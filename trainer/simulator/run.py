"""A rehearsal from its first peer to its figures."""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from trainer.engine.texts import ROWS
from trainer.simulator import liars
from trainer.simulator.churn import Leave, leaves
from trainer.simulator.clocks import Error
from trainer.simulator.events import Events
from trainer.simulator.ledger import Attempt, Ledger
from trainer.simulator.life import COORDINATOR, Life, Surroundings
from trainer.simulator.links import KINDS, Link
from trainer.simulator.net import Net
from trainer.simulator.plan import Plan
from trainer.wire import Role, Wish

SPEED_SPREAD = 0.5  # standard deviation of the logarithm
SLOWER = 10.0
ARRIVALS_S = 5.0  # the first peers come within so long
GOODBYES_S = 120.0
STUCK_ROUNDS = 5  # of the swarm, without one of its own


@dataclass(frozen=True)
class Person:
    """What is special about somebody: lies, a wrong clock, a slow computer."""

    liar: liars.Liar | None = None
    error: Error = field(default_factory=Error)
    slower: float = 1.0


ANYBODY = Person()


class Rehearsal:
    def __init__(self, plan: Plan, tell: Callable[[Attempt], None] = lambda attempt: None) -> None:
        self.plan = plan
        self.events = Events()
        self._rng = random.Random(f"{plan.seed}/people")  # noqa: S311 - a rehearsal, not a secret
        self._net = Net(self.events, random.Random(f"{plan.seed}/net"))  # noqa: S311
        self.ledger = Ledger(tell)
        self._net.seen = lambda meeting: self.ledger.meeting(meeting, COORDINATOR)
        self.lives: list[Life] = []
        self._joined = self._killed = self._left = 0
        self._reached = False

    def run(self) -> dict[str, Any]:
        """The figures; equal plans have equal ones."""
        with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
            self._around = Surroundings(self.plan.recipe, self.plan.files, self._net, Path(folder))
            self._around.report = lambda name, body: self.ledger.report(name, body, self.events.now)
            try:
                self._populate()
                self._reached = self.events.run(self._done, self.plan.longest_s)
                stuck = self._stuck()
                seconds = self.events.now
                self._end()
                return self._figures(seconds, stuck)
            finally:
                for life in self.lives:
                    life.task.kill()

    # ------------------------------------------------------------ people
    def _populate(self) -> None:
        plan = self.plan
        self.coordinator = self._add(Role.COORDINATOR, KINDS["lan"])
        special = [liars.KINDS[name]() for name in plan.liars]
        errors = list(plan.clock_errors)
        for number in range(plan.peers):
            liar = special[number] if number < len(special) else None
            late = number - len(special)
            error = errors[late] if 0 <= late < len(errors) else Error()
            slower = SLOWER if number >= plan.peers - plan.slow else 1.0
            at = self._rng.uniform(0, ARRIVALS_S)
            self.events.after(at, partial(self._come, Person(liar, error, slower)))
        self._churn = leaves(plan.peers * plan.leaves_per_minute, self._rng)
        self._next_leave()

    def _come(self, person: Person = ANYBODY) -> None:
        kinds, shares = zip(*self.plan.links, strict=True)
        link = self._rng.choices(kinds, shares)[0]
        if self.plan.recipe.round.averaged_by == "coordinator":
            link = replace(link, reachable=False)
        role = Role.PEER if link.reachable else Role.SENDER
        self._joined += 1
        self._add(role, link, person)

    def _add(self, role: Role, link: Link, person: Person = ANYBODY) -> Life:
        name = COORDINATOR if role is Role.COORDINATOR else f"peer-{self._joined:03}"
        one_batch = self.plan.recipe.micro_batch or ROWS
        middle = self.plan.samples_per_s or one_batch  # a second
        speed = middle * self._rng.lognormvariate(0, SPEED_SPREAD) / person.slower
        seed, shares = f"{self.plan.seed}/{name}", self.plan.shares
        texts = (shares[(self._joined - 1) % len(shares)],) if shares else self.plan.files.texts
        life = Life(
            self._around,
            name,
            role,
            link,
            speed,
            seed,
            texts=texts,
            liar=person.liar,
            error=person.error,
        )
        life.moved_at = self.coordinator.round if self.lives else 0
        self.lives.append(life)
        life.task.start()
        return life

    def _next_leave(self) -> None:
        leave = next(self._churn, None)
        if leave is not None:
            self.events.after(leave.after_s, lambda: self._leave(leave))

    def _leave(self, leave: Leave) -> None:
        """Liars stay, so that their number does."""
        here = [life for life in self._present() if life.liar is None]
        if here:
            life = here[int(leave.pick * len(here))]
            if leave.killed:
                self._killed += 1
                life.kill()
            else:
                self._left += 1
                life.wishes.wish = Wish.STOP
            self.events.after(leave.replaced_after_s, self._come)
        self._next_leave()

    def _present(self) -> list[Life]:
        return [
            life
            for life in self.lives
            if not life.task.ended and life is not self.coordinator and life.wishes.wish is Wish.RUN
        ]

    # ------------------------------------------------------------ the end
    def _done(self) -> bool:
        number = self.coordinator.round
        for life in self.lives:
            life.look(number)
        return number >= self.plan.rounds

    def _stuck(self) -> list[str]:
        """Honest peers whose round has not changed while the swarm's did several times."""
        now = self.coordinator.round
        return [
            life.name
            for life in self._present()
            if life.liar is None and now - life.moved_at >= STUCK_ROUNDS
        ]

    def _end(self) -> None:
        self._churn = iter(())
        for life in self.lives:
            life.wishes.wish = Wish.STOP
        self.events.run(lambda: all(life.task.ended for life in self.lives), GOODBYES_S)

    def _figures(self, seconds: float, stuck: list[str]) -> dict[str, Any]:
        plan, ledger = self.plan, self.ledger
        losses = [attempt.loss for attempt in ledger.witnessed.values()]
        return {
            "recipe_sha256": plan.recipe.sha256(),
            "strategy": plan.recipe.strategy.name,
            "seed": plan.seed,
            "peers": plan.peers,
            "liars": list(plan.liars),
            "rounds": len(losses),
            "undone": sorted(ledger.undone),
            "reached": self._reached,
            "simulated_s": round(seconds, 3),
            "first_loss": losses[0] if losses else None,
            "last_loss": losses[-1] if losses else None,
            "held_out_loss": self.coordinator.held_out_loss(),
            "attempts": dict(sorted(ledger.attempts.items())),
            "joined": self._joined,
            "killed": self._killed,
            "left": self._left,
            "stuck": stuck,
            "not_ended": [life.name for life in self.lives if not life.task.ended],
            "samples": ledger.sums(),
            "refused": ledger.refusals(),
            "bytes_sent": ledger.bytes_moved(),
            "model_sha256": _digest(self.coordinator),
        }


def _digest(life: Life) -> str:
    digest = hashlib.sha256()
    for tensor in life.learner.state()[1]:
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
