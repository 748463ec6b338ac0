"""Signals: the first asks for a clean end, the second (or too long an end) is quick and hard."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from types import FrameType

import psutil

from trainer.agent.view import View
from trainer.agent.wishes import Wishes

LONGEST_END_S = 25.0  # a preempted cloud machine has 30 s
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
log = logging.getLogger(__name__)


def quit_now(reason: str, view: View) -> None:
    """Ends this process and all that it started. Reports are on disk already."""
    log.warning("quitting hard: %s", reason)
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.Error:
            continue
    view.give_back()
    os._exit(130)


def heed_signals(wishes: Wishes, view: View) -> None:
    """From the main thread. `view` gets one line for the screen."""
    main = os.getpid()
    asked = threading.Event()

    def end() -> None:
        view.say("Stopping: what was trained is handed in or released. Again to quit at once.")
        wishes.stop("It was stopped on this machine.")
        watchdog = threading.Timer(LONGEST_END_S, quit_now, ["the end took too long", view])
        watchdog.daemon = True
        watchdog.start()

    def heed(number: int, frame: FrameType | None) -> None:
        if os.getpid() != main:  # a process of hivemind's, forked from this one
            if number == signal.SIGTERM:
                os._exit(0)
            return  # Ctrl-C reaches all processes of a terminal: the agent ends them in order
        if asked.is_set():
            quit_now("asked twice", view)
        asked.set()
        # the screen and the log may be in use by what was interrupted: another thread waits
        threading.Thread(target=end, daemon=True).start()

    if sys.stdin is not None and sys.stdin.isatty():
        # Ctrl-C goes to the whole foreground group; what the engine starts must outlive it
        os.register_at_fork(after_in_child=os.setpgrp)
    for number in SIGNALS:
        signal.signal(number, heed)
