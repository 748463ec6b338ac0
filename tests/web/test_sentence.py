"""What a page says of a collaboration that runs, or waits."""

from __future__ import annotations

import pytest

from tests.factories import make_collaboration
from trainer.recipe import Participation
from webapp.live.selectors import snapshot
from webapp.pages.live_view import sentence


@pytest.mark.parametrize(
    ("least", "online", "words", "why"),
    [
        (1, 0, "Waiting for volunteers", "nobody is lending"),
        (1, 1, "Training alone", "trains on"),
        (2, 1, "Waiting for volunteers", "a round needs the results of 2 devices"),
        (2, 2, "Training", "one model"),
    ],
)
@pytest.mark.django_db
def test_one_device_trains_on_only_where_a_round_needs_no_more(least, online, words, why):
    rules = Participation(least_members=least)
    collaboration = make_collaboration("demo", state="running", participation=rules)
    said = sentence(snapshot(collaboration) | {"online": online, "peers": online})
    assert said["words"] == words and why in said["why"]
