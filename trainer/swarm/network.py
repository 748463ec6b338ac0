"""The process of the DHT node.

Guards against hivemind 1.1.12, where a process that dies just after it has asked the node something
takes the node's process along, with a traceback in the log.
"""

from __future__ import annotations

import logging

from hivemind.dht import DHT

log = logging.getLogger(__name__)


class Network(DHT):
    """Ends all the same: whoever watches it is told, and the agent begins anew."""

    def run(self) -> None:
        try:
            super().run()
        except EOFError:
            log.warning("a process of this peer died while it was asking the network")
