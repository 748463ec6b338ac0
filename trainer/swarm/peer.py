"""One peer's place in the swarm: its DHT node, passport, records and averager."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path

import torch
from hivemind.dht import DHT
from hivemind.dht.crypto import RSASignatureValidator

from trainer.passport import InvalidPassport, Passport, RevocationList
from trainer.recipe import Recipe
from trainer.swarm import empty_streams, gate, identity, orphans
from trainer.swarm.admission import Admission
from trainer.swarm.averager import RoundAverager
from trainer.swarm.door import Door
from trainer.swarm.judgement import limits_of
from trainer.swarm.network import Network
from trainer.swarm.notices import Notices
from trainer.swarm.processes import Processes
from trainer.swarm.progress import Standing
from trainer.swarm.revoked import FILENAME, Revoked
from trainer.swarm.tracker import Tracker

PASSPORT_EVERY_S = 15.0
DRAIN_S = 4.0
LOOK_EVERY_S = 0.25
LOOK_S = 5.0
NETWORK, AVERAGING = "network", "averaging"
log = logging.getLogger(__name__)


class Unreachable(ConnectionError):
    """Nobody of the swarm answered; says who was asked and, where that is known, why."""


class SwarmPeer:
    """Raises Unreachable when none of `bootstrap` answers, or as soon as it is not `is_wanted`."""

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        *,
        passport: Callable[[], Passport],
        authority: str,
        bootstrap: Sequence[str],
        client_mode: bool,
        listen_address: str,
        announce_host: str,
        is_coordinator: bool,
        revocations: Callable[[], RevocationList | None],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._recipe, self._passport = recipe, passport
        self._client_mode = client_mode
        self.identity = identity.load_or_make(folder / identity.FILENAME)
        self.peer_id = self.identity.peer_id
        self._revoked = Revoked(folder / FILENAME, authority)
        self._admission = Admission(
            folder / "passport.json", self._revoked, authority, recipe.collaboration
        )
        self._next_passport = 0.0
        self._refresh_passport()
        self.bootstrap = tuple(bootstrap)
        self.coordinators = frozenset(address.rpartition("/p2p/")[2] for address in bootstrap)
        if is_coordinator:
            self.coordinators = frozenset([self.peer_id])
        self._processes = Processes()
        self.dht = self._join(listen_address, announce_host, is_wanted)
        self._notices = Notices(
            self.dht,
            self._revoked,
            swarm_id=recipe.swarm_id(),
            owner=self.identity.public_text,
            coordinators=self.coordinators,
            source=revocations if is_coordinator else None,
        )
        self._notices.start()
        self.tracker: Tracker | None = None
        self.averager: RoundAverager | None = None

    def _join(self, listen_address: str, announce_host: str, is_wanted: Callable[[], bool]) -> DHT:
        key = gate.as_hivemind_key(self.identity)
        empty_streams.install()
        try:
            with orphans.children_end_with_us():
                dht = Network(
                    start=False,
                    initial_peers=list(self.bootstrap),
                    client_mode=self._client_mode,
                    host_maddrs=[listen_address],
                    announce_maddrs=_announced(listen_address, announce_host),
                    identity_path=str(self.identity.path),
                    check_if_identity_free=False,
                    authorizer=gate.PassportGate(key, self._admission),
                    record_validators=[RSASignatureValidator(key)],
                    use_relay=True,
                    startup_timeout=60,
                    shutdown_timeout=6,
                )
                dht.start()
            self._processes.add(NETWORK, dht)
            self._until_ready(dht, is_wanted)
            return dht
        except Exception as error:
            self._processes.close()
            place = ", ".join(self.bootstrap)[:150]
            why = f" ({problem})" if (problem := self.problem()) else ""
            raise Unreachable(f"the swarm does not answer at {place}{why}") from error

    def _until_ready(self, dht: DHT, is_wanted: Callable[[], bool]) -> None:
        """Raises what the network's process has met, or TimeoutError when it is not wanted."""
        while True:
            is_last_look = not dht.is_alive() or not is_wanted()
            self._processes.survey()
            try:
                dht.wait_until_ready(LOOK_EVERY_S)
                break
            except FutureTimeout:
                if is_last_look:
                    raise
        self._processes.survey()
        self._processes.watch()

    def track(self, standing: Callable[[], Standing]) -> Tracker:
        self.tracker = Tracker(
            self.dht,
            swarm_id=self._recipe.swarm_id(),
            owner=self.identity.public_text,
            timing=self._recipe.round,
            addresses=[a for a in self.bootstrap if self.peer_id not in a],
            coordinators=self.coordinators,
            standing=standing,
        )
        self.tracker.start()
        return self.tracker

    def average(
        self,
        tensors: Sequence[torch.Tensor],
        state_source: Callable[[], tuple[dict[str, int], list[torch.Tensor]]],
    ) -> RoundAverager:
        """Starts the averaging process for offers of these shapes.

        Raises ProcessEnded when it, or the network's, is gone before it is up.
        """
        self.averager = RoundAverager(
            tensors,
            self.dht,
            swarm_id=self._recipe.swarm_id(),
            timing=self._recipe.round,
            limits=limits_of(self._recipe),
            coordinators=self.coordinators,
            client_mode=self._client_mode,
            door=Door(self._admission),
            state_source=state_source,
        )
        self._processes.add(AVERAGING, self.averager)
        self.averager.begin()
        self._processes.survey()
        return self.averager

    def share_state(self, round_number: int) -> None:
        """Tells newcomers that we have the state of this round."""
        if self.averager is not None and not self._client_mode:
            self.averager.state_sharing_priority = float(round_number)

    def heard_at(self) -> float | None:
        """When the site last heard a device ask for a part of a text; None: nobody told us.

        Looks first, for up to 5 s: this machine may have been asleep.
        """
        if self.tracker is None:
            return None
        self.tracker.refreshed(LOOK_S)
        return self.tracker.heard_at()

    def addresses(self) -> tuple[str, ...]:
        """Where others reach this peer, the plainest first."""
        found = [str(address) for address in self.dht.get_visible_maddrs()]
        plain = [a for a in found if "/tcp/" in a and "/ws" not in a and "p2p-circuit" not in a]
        return tuple((plain or found)[:16])

    def tend(self) -> None:
        """Cheap: call it often. Raises ProcessEnded when a process of ours is gone."""
        self._processes.check()
        self._refresh_passport()

    def _refresh_passport(self) -> None:
        """A site that is down leaves the passport we have."""
        if time.monotonic() < self._next_passport:
            return
        self._next_passport = time.monotonic() + PASSPORT_EVERY_S
        self._admission.show(self._passport())

    def problem(self) -> str:
        """Why nobody lets this peer in, which would think itself alone; empty: it may take part."""
        try:
            holder = self._admission.check(self._admission.own())
        except InvalidPassport as why:
            return str(why)
        return "" if holder.peer_id == self.peer_id else "this passport is another peer's"

    def close(self) -> None:
        """Leaves: record first, then the averager once it has served its group, then the DHT.

        Nothing of its processes is left then, whatever became of them.
        """
        is_connected = self._processes.lost != NETWORK
        if is_connected:
            self._processes.rest()
        self._notices.stop()
        if self.tracker is not None:
            self.tracker.stop(says_goodbye=is_connected)
        if is_connected and self.averager is not None and self.averager.is_alive():
            if not self._client_mode:
                self.averager.allow_state_sharing = False
            self.averager.drain(DRAIN_S)
            self.averager.shutdown()
        if is_connected:
            self.dht.shutdown()
        self._processes.close()


def _announced(listen_address: str, host: str) -> list[str] | None:
    """What to tell others instead of what the machine sees; needs a fixed port."""
    port = listen_address.rpartition("/tcp/")[2]
    if not host or not port.isdigit() or int(port) == 0:
        return None
    kind = "ip6" if ":" in host else "ip4" if host.replace(".", "").isdigit() else "dns"
    return [f"/{kind}/{host}/tcp/{port}"]
