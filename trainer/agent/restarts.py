"""How soon an agent begins anew whose process died, and when it gives that up.

When it did so lately is in the environment, which outlives `execv` and is gone with the agent: who
starts it by hand gets all tries again.
"""

from __future__ import annotations

from collections.abc import MutableMapping

VARIABLE = "POTLUCK_RESTARTED_AT"  # unix times
WITHIN_S = 1800.0
PAUSES_S = (1.0, 15.0, 60.0)  # before each try of the last `WITHIN_S`
ADVICE = (
    "It does not start again by itself. Look what takes this machine's memory or ends its "
    "processes (free -h, dmesg), lend fewer --threads or --processes, and start it anew."
)


def next_pause_s(environment: MutableMapping[str, str], now: float) -> float | None:
    """Notes this death; None when there were too many of late."""
    times = [float(word) for word in environment.get(VARIABLE, "").split()]
    lately = [time for time in times if 0 <= now - time < WITHIN_S]
    if len(lately) >= len(PAUSES_S):
        return None
    environment[VARIABLE] = " ".join(f"{int(time)}" for time in [*lately, now])
    return PAUSES_S[len(lately)]


def last_words(why: str) -> str:
    return f"{why}, {len(PAUSES_S) + 1} times in {WITHIN_S / 60:.0f} minutes. {ADVICE}"
