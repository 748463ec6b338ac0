"""Finds a restarted coordinator again.

Guards against hivemind 1.1.12: peers drop a DHT node that does not answer from their routing
tables and never dial it again, so that a coordinator which comes back at the same address, with
the same identity, stays alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hivemind.dht import DHT
from hivemind.p2p import PeerID
from hivemind.utils.multiaddr import Multiaddr


def reping(dht: DHT, address: str) -> bool:
    """Dials `address` (it ends in /p2p/<peer id>) and pings it; whether it answered."""
    return bool(dht.run_coroutine(partial(_reping, address=address)))


def answers(dht: DHT, name: str) -> bool:
    """Whether the peer of this id still answers where it was last met."""
    return bool(dht.run_coroutine(partial(_answers, name=name)))


async def _answers(_dht: DHT, node: Any, name: str) -> bool:
    try:
        return await node.protocol.call_ping(PeerID.from_base58(name)) is not None
    except Exception:
        return False


async def _reping(_dht: DHT, node: Any, address: str) -> bool:
    place, _, name = address.rpartition("/p2p/")
    peer = PeerID.from_base58(name)
    try:
        await node.p2p._client.connect(peer, [Multiaddr(place)])
        return await node.protocol.call_ping(peer) is not None
    except Exception:  # any failure means: not there yet
        return False
