"""Whose data a model is made of: each participant's share of the tokens, and of the say."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Sum

from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration
from webapp.credit.models import HourlyCredit

MOST_ROWS = 20


@dataclass(frozen=True)
class DataShare:
    """`tokens` and `weight` are shares of the collaboration's. `user` None: accounts that are gone.

    `weight` is of the averages' weight, which `weigh_by` and a cap make another share than that of
    the tokens; None where no agent has told it.
    """

    user: User | None
    tokens: float
    weight: float | None
    rounds: int


def data_shares(collaboration: Collaboration) -> list[DataShare]:
    """The largest first, `MOST_ROWS` at most; empty before the first credit."""
    rows = (
        HourlyCredit.objects.filter(collaboration=collaboration)
        .values("user")
        .annotate(all_tokens=Sum("tokens"), all_weight=Sum("weight"), all_rounds=Sum("rounds"))
        .order_by("-all_tokens", "user")
    )
    found = list(rows)
    tokens = sum(row["all_tokens"] for row in found)
    weight = sum(row["all_weight"] for row in found)
    users = User.objects.in_bulk([row["user"] for row in found[:MOST_ROWS]])
    return [
        DataShare(
            user=users.get(row["user"]),
            tokens=row["all_tokens"] / tokens,
            weight=row["all_weight"] / weight if weight else None,
            rounds=row["all_rounds"],
        )
        for row in found[:MOST_ROWS]
        if tokens
    ]
