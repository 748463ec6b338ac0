"""One peer's place in the swarm: its DHT node, passport, records and averager."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from hivemind.dht import DHT
from hivemind.dht.crypto import RSASignatureValidator

from trainer.passport import Passport
from trainer.recipe import Recipe
from trainer.swarm import clock, empty_streams, gate, identity, orphans
from trainer.swarm.averager import RoundAverager
from trainer.swarm.judgement import Limits
from trainer.swarm.progress import Standing
from trainer.swarm.tracker import Tracker

PASSPORT_EVERY_S = 15.0
DRAIN_S = 4.0
log = logging.getLogger(__name__)


class Unreachable(ConnectionError):
    """Nobody of the swarm answered; says who was asked."""


class SwarmPeer:
    """Raises Unreachable when none of `bootstrap` answers."""

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
    ) -> None:
        self._recipe, self._passport = recipe, passport
        self._client_mode = client_mode
        self.identity = identity.load_or_make(folder / identity.FILENAME)
        self.peer_id = self.identity.peer_id
        key = gate.as_hivemind_key(self.identity)
        self._passport_file = folder / "passport.json"
        self._next_passport = self._expires_at = 0.0
        self.refresh_passport()
        self.bootstrap = tuple(bootstrap)
        self.coordinators = frozenset(address.rpartition("/p2p/")[2] for address in bootstrap)
        if is_coordinator:
            self.coordinators = frozenset([self.peer_id])
        empty_streams.install()
        try:
            with orphans.children_end_with_us():
                self.dht = DHT(
                    start=True,
                    initial_peers=list(bootstrap),
                    client_mode=client_mode,
                    host_maddrs=[listen_address],
                    announce_maddrs=_announced(listen_address, announce_host),
                    identity_path=str(self.identity.path),
                    check_if_identity_free=False,
                    authorizer=gate.PassportGate(
                        key, self._passport_file, authority, recipe.collaboration
                    ),
                    record_validators=[RSASignatureValidator(key)],
                    use_relay=True,
                    startup_timeout=60,
                    shutdown_timeout=6,
                )
        except Exception as error:
            raise Unreachable(f"no peer answered at {', '.join(bootstrap)}: {error}") from error
        self.tracker: Tracker | None = None
        self.averager: RoundAverager | None = None

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
        """Starts the averaging process for offers of these shapes."""
        self.averager = RoundAverager(
            tensors,
            self.dht,
            swarm_id=self._recipe.swarm_id(),
            timing=self._recipe.round,
            limits=Limits(self._recipe.round.most_samples(), self._recipe.sequence_length),
            coordinators=self.coordinators,
            client_mode=self._client_mode,
            state_source=state_source,
        )
        return self.averager

    def share_state(self, round_number: int) -> None:
        """Tells newcomers that we have the state of this round."""
        if self.averager is not None and not self._client_mode:
            self.averager.state_sharing_priority = float(round_number)

    def addresses(self) -> tuple[str, ...]:
        """Where others reach this peer, the plainest first."""
        found = [str(address) for address in self.dht.get_visible_maddrs()]
        plain = [a for a in found if "/tcp/" in a and "/ws" not in a and "p2p-circuit" not in a]
        return tuple((plain or found)[:16])

    def refresh_passport(self) -> None:
        """Cheap: call it often. A site that is down leaves the passport we have."""
        if time.monotonic() < self._next_passport:
            return
        self._next_passport = time.monotonic() + PASSPORT_EVERY_S
        passport = self._passport()
        self._expires_at = passport.read().expires_at
        gate.write_passport(self._passport_file, passport)

    def passport_expired(self) -> bool:
        """Nobody answers a peer whose passport has expired: it would think itself alone."""
        return self._expires_at <= clock.now()

    def close(self) -> None:
        """Leaves: record first, then the averager once it has served its group, then the DHT."""
        if self.tracker is not None:
            self.tracker.stop()
        if self.averager is not None and self.averager.is_alive():
            if not self._client_mode:
                self.averager.allow_state_sharing = False
            self.averager.drain(DRAIN_S)
            self.averager.shutdown()
        self.dht.shutdown()


def _announced(listen_address: str, host: str) -> list[str] | None:
    """What to tell others instead of what the machine sees; needs a fixed port."""
    port = listen_address.rpartition("/tcp/")[2]
    if not host or not port.isdigit() or int(port) == 0:
        return None
    kind = "ip6" if ":" in host else "ip4" if host.replace(".", "").isdigit() else "dns"
    return [f"/{kind}/{host}/tcp/{port}"]
