"""Which state may follow which: the whole life of a collaboration."""

from __future__ import annotations

from webapp.collaborations.models import State

MOVES: dict[State, frozenset[State]] = {
    State.DRAFT: frozenset({State.OPEN}),
    State.OPEN: frozenset({State.RUNNING, State.PAUSED, State.FINISHED, State.FAILED}),
    State.RUNNING: frozenset({State.PAUSED, State.FINISHED, State.FAILED}),
    State.PAUSED: frozenset({State.OPEN, State.RUNNING, State.FINISHED, State.FAILED}),
    State.FINISHED: frozenset(),
    State.FAILED: frozenset(),
}
LIVE = (State.OPEN, State.RUNNING, State.PAUSED)  # has a swarm, takes newcomers
ENDED = (State.FINISHED, State.FAILED)


def may_move(before: State | str, after: State | str) -> bool:
    return State(after) in MOVES[State(before)]
