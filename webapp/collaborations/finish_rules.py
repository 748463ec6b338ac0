"""When a collaboration ends by itself: enough rounds or samples, or a held-out loss that is
reached or no longer falls.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Max, Sum

from trainer.recipe import Finish
from webapp.collaborations import services
from webapp.collaborations.models import Collaboration, State


def met_rule(
    rules: Finish, *, rounds: int, samples: int, held_out: Sequence[tuple[int, float]] = ()
) -> str:
    """The rule that holds, in words; empty: none does.

    `rounds` and `samples` are done so far; `held_out` is (round, loss) in order of rounds.
    """
    if rules.rounds and rounds >= rules.rounds:
        return f"It reached its goal of {rules.rounds:,} rounds."
    if rules.samples and samples >= rules.samples:
        return f"It reached its goal of {rules.samples:,} samples."
    if not held_out:
        return ""
    best_round, best = min(held_out, key=lambda point: (point[1], point[0]))
    last_round = held_out[-1][0]
    if rules.held_out_loss is not None and best <= rules.held_out_loss:
        return f"Held-out loss {best:.4g} reached the goal of {rules.held_out_loss:.4g}."
    if rules.patience_rounds and last_round - best_round >= rules.patience_rounds:
        return (
            f"Held-out loss has not fallen below {best:.4g} since round {best_round}, "
            f"for {last_round - best_round} rounds."
        )
    return ""


def rounds_done(collaboration: Collaboration) -> int:
    """Of a running one: rounds count from 0, and `collaboration.round` is the newest applied.

    A checkpoint says with which round to go on, so it also counts one that ended in going back to
    earlier parameters: after the last one, no other would come.
    """
    written = collaboration.checkpoints.aggregate(newest=Max("round", default=0))["newest"]
    return max(collaboration.round + 1, int(written))


def check(collaboration: Collaboration) -> bool:
    """Finishes a running collaboration whose rule holds; True when it did."""
    collaboration.refresh_from_db()
    if collaboration.state != State.RUNNING:
        return False
    rules = collaboration.recipe.finish
    if rules == Finish():
        return False
    rounds = collaboration.rounds.all()
    measured = rounds.filter(held_out_loss__isnull=False).order_by("round")
    reason = met_rule(
        rules,
        rounds=rounds_done(collaboration),
        samples=rounds.aggregate(sum=Sum("samples", default=0))["sum"],
        held_out=[
            (number, loss)
            for number, loss in measured.values_list("round", "held_out_loss")
            if loss is not None
        ],
    )
    if reason:
        services.finish(collaboration, by=None, reason=reason)
    return bool(reason)
