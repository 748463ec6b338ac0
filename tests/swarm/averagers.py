"""Real averagers, each in a process of its own with a DHT of its own, driven round by round."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from hivemind.dht import DHT

from trainer.passport import Claims, make_authority, public_text, sign
from trainer.recipe import Round
from trainer.strategies.base import norm_of
from trainer.swarm import averager, clock, empty_streams
from trainer.swarm.admission import Admission
from trainer.swarm.averager import RoundAverager
from trainer.swarm.door import Door
from trainer.swarm.identity import FILENAME, Identity, load_or_make
from trainer.swarm.judgement import Limits
from trainer.swarm.revoked import Revoked
from trainer.swarm.verdict import Note, Verdict
from trainer.wire import Role

LIMITS = Limits(most_samples=3000, sequence_length=32)
MARK = (1.0, -2.0, 10.0)
PATIENCE_S = 60.0  # a starved machine is no lost member
StateSource = Callable[[], tuple[dict[str, int], list[torch.Tensor]]]
Result = tuple[Verdict, list[torch.Tensor]]


class Group:
    """`shapes` of every offer. Members are added one by one; the first may be the coordinator.

    `timing` is more of the recipe's `Round`.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, ...]],
        codec: str = "fp32",
        coordinator: bool = False,
        limits: Limits = LIMITS,
        **timing: Any,
    ) -> None:
        multiprocessing.set_start_method("fork", force=True)
        clock.follow_site(0.0)
        empty_streams.install()
        self.shapes, self.limits = shapes, limits
        options = {
            "matchmaking_s": 4,
            "averaging_s": 3 * PATIENCE_S,
            "target_samples": 1000,
            **timing,
        }
        self.timing = Round(codec=codec, **options)
        self.dhts: list[DHT] = []
        self.averagers: list[RoundAverager] = []
        self.round = self._num_added = 0
        self._folder = Path(tempfile.mkdtemp())
        self._authority = make_authority(self._folder / "authority.pem")
        self._has_coordinator = coordinator

    def add(
        self,
        codec: Callable[[str], Any] = averager.Codec,
        sends_only: bool = False,
        listen: str = "/ip4/127.0.0.1/tcp/0",
        source: StateSource = lambda: ({"round": 0}, []),
    ) -> str:
        """Starts one more member, which encodes its parts with `codec` and gives the state of
        `source` to newcomers; its name."""
        first = [str(a) for a in self.dhts[0].get_visible_maddrs()] if self.dhts else []
        folder = self._folder / str(self._num_added)
        self._num_added += 1
        key, door = self._passport(folder)
        dht = DHT(
            start=True,
            initial_peers=first,
            client_mode=sends_only,
            host_maddrs=[listen],
            identity_path=str(key.path),
        )
        self.dhts.append(dht)
        here = {"Codec": codec, "SILENCE_S": PATIENCE_S}  # the averaging process is forked here
        with mock.patch.multiple(averager, **here):
            made = RoundAverager(
                [torch.zeros(shape) for shape in self.shapes],
                dht,
                swarm_id="group",
                timing=self.timing,
                limits=self.limits,
                coordinators=self.coordinators,
                client_mode=sends_only,
                door=door,
                state_source=source,
            )
            made.begin()
        self.averagers.append(made)
        return str(dht.peer_id)

    def remove(self, number: int) -> None:
        """It leaves for good."""
        self.averagers.pop(number).shutdown()
        self.dhts.pop(number).shutdown()

    def _passport(self, folder: Path) -> tuple[Identity, Door]:
        folder.mkdir()
        key = load_or_make(folder / FILENAME)
        authority = public_text(self._authority)
        claims = Claims(
            user="u",
            device=folder.name,
            peer_key=key.public_text,
            collaboration="group",
            expires_at=time.time() + 3600,
        )
        revoked = Revoked(folder / "revoked.json", authority)
        admission = Admission(folder / "passport.json", revoked, authority, "group")
        admission.show(sign(claims, self._authority))
        return key, Door(admission)

    @property
    def names(self) -> list[str]:
        return [str(dht.peer_id) for dht in self.dhts]

    @property
    def coordinators(self) -> frozenset[str]:
        return frozenset(self.names[:1] if self._has_coordinator else [])

    def _but(self, number: int) -> set[str]:
        return {name for place, name in enumerate(self.names) if place != number}

    def note(self, offer: Sequence[torch.Tensor], count: int, **lies: Any) -> Note:
        honest = {
            "round": self.round,
            "role": Role.PEER,
            "samples": count,
            "tokens": count,
            "loss_sum": 2.0 * count,
            "weight": float(count),
            "norm": norm_of(offer),
            "fingerprint": MARK,
        }
        return Note(**{**honest, **lies})

    def average(
        self,
        offers: Sequence[Sequence[torch.Tensor]],
        tokens: Sequence[int],
        lies: dict[int, dict[str, Any]] | None = None,
        leaver: int | None = None,
    ) -> list[Result]:
        """One round of all members at once; `lies` change the notes of some, by their number.

        The member with the number `leaver` lets go of the round as soon as it averages.
        """
        self.round += 1
        notes = [
            self.note(offer, count, **(lies or {}).get(number, {}))
            for number, (offer, count) in enumerate(zip(offers, tokens, strict=True))
        ]
        with ThreadPoolExecutor(len(offers)) as pool:
            running = [
                pool.submit(
                    member.run_round,
                    offer,
                    note,
                    self._but(number),
                    lambda activity, stays=number != leaver: stays or activity != "averaging",
                )
                for number, (member, offer, note) in enumerate(
                    zip(self.averagers, offers, notes, strict=True)
                )
            ]
            return [one.result() for one in running]

    def close(self) -> None:
        for member in self.averagers:
            member.shutdown()
        for dht in self.dhts:
            dht.shutdown()


def mean_of(offers: Sequence[Sequence[torch.Tensor]], tokens: Sequence[int]) -> list[torch.Tensor]:
    """The weighted mean that an average of these offers should give; worked out in double."""
    total = sum(tokens)
    return [
        sum(t.double() * n / total for t, n in zip(parts, tokens, strict=True)).float()
        for parts in zip(*offers, strict=True)
    ]
