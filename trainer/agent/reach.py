"""Whether others can dial this device; where they cannot, it takes part as a sender."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from trainer.agent.join import Api
from trainer.agent.seat import Seat
from trainer.grant import DialBack
from trainer.recipe import Round
from trainer.wire import Role

LOOK_UP_S = 0.1
EVERYWHERE = "0.0.0.0"  # noqa: S104 - a peer is there to be dialled


def seated(seat: Seat, timing: Round, api: Api, say: Callable[[str], None]) -> Seat:
    """The seat with the role, port and address that a dial-back from the site found to work.

    Raises web.Unreachable or web.Refusal.
    """
    if seat.role is not Role.PEER:
        return seat
    if timing.averaged_by == "coordinator":
        say("Here the coordinator alone averages: this device only sends, and nobody dials it.")
        return replace(seat, role=Role.SENDER)
    with _listener(seat.port) as listener:
        port = listener.getsockname()[1]
        word = secrets.token_hex(16)
        heard = threading.Event()
        answering = threading.Thread(
            target=_answer, args=(listener, word, heard), name="dial-back", daemon=True
        )
        answering.start()
        try:
            found = api.dial_back(port, word)
        finally:
            heard.set()
            answering.join()  # a listener that is closed while it accepts goes on listening
    if not found.reachable:
        say(
            f"Others cannot dial this device ({found.reason}), so it takes part as a sender: its "
            "work counts like everybody's. To be a full peer, forward a port to it and start it "
            "with --port."
        )
        return replace(seat, role=Role.SENDER)
    return replace(seat, listen_address=f"/ip4/{EVERYWHERE}/tcp/{port}", announce_host=_told(found))


def _listener(port: int) -> socket.socket:
    """On `port`, or on any free one where that is taken or 0."""
    try:
        return socket.create_server((EVERYWHERE, port))
    except OSError:
        return socket.create_server((EVERYWHERE, 0))


def _answer(listener: socket.socket, word: str, heard: threading.Event) -> None:
    """Says the word to whoever comes, until it was heard or not."""
    listener.settimeout(LOOK_UP_S)
    while not heard.is_set():
        with suppress(OSError):  # nobody came for a while, or the caller is gone again
            caller, _ = listener.accept()
            with caller:
                caller.sendall(word.encode())


def _told(found: DialBack) -> str:
    """What to announce: "" where the machine knows its own address, else what the site sees."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in found.address else socket.AF_INET) as probe:
            probe.bind((found.address, 0))
    except OSError:
        return found.address
    return ""
