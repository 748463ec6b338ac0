"""The fixed words of the wire: states, roles, outcomes, causes and wishes."""

from __future__ import annotations

from enum import StrEnum


class Activity(StrEnum):
    """What an agent is doing now; every value but `training` is shown with its reason."""

    STARTING = "starting"
    CATCHING_UP = "catching_up"
    TRAINING = "training"
    EVALUATING = "evaluating"
    MATCHMAKING = "matchmaking"
    AVERAGING = "averaging"
    WAITING = "waiting"
    PAUSED = "paused"
    LEAVING = "leaving"


class Role(StrEnum):
    PEER = "peer"
    SENDER = "sender"  # client mode: sends, is not reachable
    COORDINATOR = "coordinator"
    EVALUATOR = "evaluator"  # no member of the swarm: measures checkpoints, and trains nothing


class Outcome(StrEnum):
    CLEAN = "clean"
    PARTIAL = "partial"
    ALONE = "alone"
    FAILED = "failed"
    UNDONE = "undone"  # back to earlier parameters


class LeaveCause(StrEnum):
    STOPPED = "stopped"  # Ctrl-C, SIGTERM
    FINISHED = "finished"  # the collaboration ended
    BANNED = "banned"
    REVOKED = "revoked"
    FAILED = "failed"
    RESTARTING = "restarting"  # its memory grew too much, or a process of it died; it is back soon
    LOST = "lost"  # written by the site only
    REPLACED = "replaced"  # written by the site only: the device started again


class Wish(StrEnum):
    RUN = "run"
    PAUSE = "pause"
    FINISH = "finish"
    STOP = "stop"
