"""Torch and hivemind take seconds to import: that goes on while the site is asked."""

from __future__ import annotations

import logging
import threading
from importlib import import_module

ENGINE = "trainer.engine.peer"
log = logging.getLogger(__name__)


def load_engine() -> None:
    threading.Thread(target=_load, daemon=True).start()


def _load() -> None:
    """Who needs the engine imports it, too, and meets what is wrong with it there. An agent that
    stops meanwhile takes parts of torch away from under this."""
    try:
        import_module(ENGINE)
    except Exception as error:
        log.debug("%s is not loaded ahead: %r", ENGINE, error)
