"""Whether others can reach a device: the site dials the port that the device says it listens on.

Only the caller's own address is dialled, and it must answer with the caller's word, so nobody can
use the site to look at other machines.
"""

from __future__ import annotations

import socket

from trainer.grant import DialBack

PATIENCE_S = 3.0


def dial_back(address: str, port: int, word: str) -> DialBack:
    """Takes up to `PATIENCE_S` twice."""
    try:
        with socket.create_connection((address, port), timeout=PATIENCE_S) as connection:
            connection.settimeout(PATIENCE_S)
            heard = connection.recv(len(word))  # one packet: a slow caller must not hold us
    except OSError as error:
        reason = f"port {port} of {address} did not answer: {error.strerror or error}"
        return DialBack(reachable=False, address=address, reason=reason)
    if heard != word.encode():
        reason = f"something else answers at port {port} of {address}"
        return DialBack(reachable=False, address=address, reason=reason)
    return DialBack(reachable=True, address=address, reason="the site reached it")
