"""The agent, with a copy of all it hands over: `python -m tests.swarm.recording`

takes the words of `python -m trainer`. What goes to a socket (before it is encrypted or masked)
and into an average is appended to `RECORDED/<kind>-<process>`, in all of its processes. With
`CRASH`, the reader of its texts breaks after so many documents, with an error that quotes one and
names its place.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection

from trainer.commands import main
from trainer.sources.private import PrivateSource
from trainer.swarm.averager import RoundAverager

FOLDER = Path(os.environ["RECORDED"])
CRASH = int(os.environ.get("CRASH", "0"))


def note(kind: str, data: Any) -> None:
    content = data.encode() if isinstance(data, str) else bytes(data)
    with (FOLDER / f"{kind}-{os.getpid()}").open("ab") as file:
        file.write(content)


def copy_calls(kind: str, owner: type, name: str) -> None:
    """Of a method whose first argument is what is sent."""
    honest: Callable[..., Any] = getattr(owner, name)

    def recorded(self: Any, data: Any, *more: Any, **options: Any) -> Any:
        if isinstance(data, bytes | bytearray | memoryview | str):
            note(kind, data)
        return honest(self, data, *more, **options)

    setattr(owner, name, recorded)


def copy_averages() -> None:
    honest = RoundAverager.run_round

    def run_round(self, offer, own_note, others, watch):
        for tensor in offer:
            note("average", tensor.detach().cpu().contiguous().view(-1).numpy().tobytes())
        note("average", repr(own_note))
        return honest(self, offer, own_note, others, watch)

    RoundAverager.run_round = run_round  # type: ignore[method-assign]


def break_reader() -> None:
    honest = PrivateSource.documents

    def documents(self, seed):
        for number, document in enumerate(honest(self, seed)):
            if number == CRASH:
                raise ValueError(f"{self.path}: cannot digest {document!r}")
            yield document

    PrivateSource.documents = documents  # type: ignore[method-assign]


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for one in ("send", "sendall", "sendto"):
        copy_calls("socket", socket.socket, one)
    copy_calls("stream", asyncio.StreamWriter, "write")
    copy_calls("http", http.client.HTTPConnection, "send")
    copy_calls("websocket", ClientConnection, "send")
    copy_averages()
    if CRASH:
        break_reader()
    sys.exit(main())
