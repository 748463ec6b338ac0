"""A volunteer's agent as the site sees it: one device websocket that speaks trainer/wire.py."""

from __future__ import annotations

import time
import uuid

from websockets.sync.client import connect

from trainer.wire import (
    WIRE_VERSION,
    Ack,
    Activity,
    Bye,
    Hello,
    LeaveCause,
    Outcome,
    Progress,
    Receipt,
    Report,
    VerdictSummary,
    Welcome,
    read_from_site,
)

ANSWER_WITHIN_S = 10


class Agent:
    def __init__(self, site: str, token: str, slug: str) -> None:
        self.seq = 0
        self.socket = connect(
            f"{site.replace('http', 'ws', 1)}/ws/device/",
            additional_headers={"Authorization": f"Bearer {token}"},
        )
        self.socket.send(
            Hello(
                version=WIRE_VERSION,
                agent_version="test",
                session=uuid.uuid4().hex,
                collaboration=slug,
            ).model_dump_json()
        )
        self._await(Welcome)

    def progress(self, number: int, *, loss: float = 3.0, samples: int = 10, **more) -> None:
        values = {"activity": Activity.TRAINING, "samples_per_s": 5.0} | more
        said = Progress(
            round=number,
            samples=samples,
            tokens=samples * 10,
            loss_sum=loss * samples * 10,
            **values,
        )
        self.socket.send(said.model_dump_json())

    def finish_round(self, number: int, *, loss: float | None, samples: int = 64, **more) -> None:
        """Reports one finished round, and waits until the site has stored it."""
        values = {"outcome": Outcome.CLEAN, "members": 1, "duration_s": 2.0} | more
        verdict = VerdictSummary(
            round=number, samples=samples, tokens=samples * 10, loss=loss, **values
        )
        self._report(
            Receipt(
                round=number,
                samples=samples,
                tokens=samples * 10,
                accepted=True,
                compute_s=1.0,
                verdict=verdict,
            )
        )

    def leave(self) -> None:
        self._report(Bye(cause=LeaveCause.STOPPED))

    def _report(self, body) -> None:
        self.seq += 1
        self.socket.send(Report(seq=self.seq, at=time.time(), body=body).model_dump_json())
        while self._await(Ack).seq < self.seq:
            pass

    def _await(self, kind):
        while True:
            said = read_from_site(self.socket.recv(timeout=ANSWER_WITHIN_S))
            if isinstance(said, kind):
                return said

    def close(self) -> None:
        self.socket.close()
