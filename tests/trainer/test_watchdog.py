"""Memory that grows beyond what a healthy peer needs ends the session, with words, not the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.agent.watchdog import GIB, MIB, WARM_ROUNDS, Reading, Watchdog, is_outgrown
from trainer.agent.wishes import Wishes
from trainer.wire import Control, LeaveCause, Wish

PLENTY = 8 * GIB
WARM = Reading(GIB, GIB)


class World:
    rounds, linked = WARM_ROUNDS, True


@pytest.fixture
def dog(tmp_path: Path) -> Watchdog:
    world = World()
    wishes = Wishes(tmp_path / "wish.json")
    made = Watchdog(wishes, rounds=lambda: world.rounds, is_linked=lambda: world.linked)
    made.world = world  # type: ignore[attr-defined]
    made.look(WARM, PLENTY)
    return made


@pytest.mark.parametrize(
    ("own", "started", "outgrown"),
    [
        (1.0, 1.0, False),
        (1.9, 1.9, False),  # twice a little is a little
        (1.0, 2.1, True),
        (2.1, 1.0, True),
    ],
)
def test_each_part_may_grow_by_half_and_by_a_gibibyte(own, started, outgrown):
    assert is_outgrown(WARM, Reading(int(own * GIB), int(started * GIB))) is outgrown
    large = Reading(10 * GIB, 10 * GIB)
    assert not is_outgrown(large, Reading(14 * GIB, 14 * GIB))


def test_growth_is_told_in_words_and_against_what_was_usual_after_the_first_rounds(dog):
    dog.world.rounds = 1
    assert dog.look(Reading(GIB, 3 * GIB), PLENTY) == ""  # still warming up
    dog.world.rounds = WARM_ROUNDS
    assert dog.look(Reading(GIB, 4 * GIB), PLENTY) == ""
    assert dog.look(Reading(GIB, 5 * GIB), PLENTY) == (
        "its memory grew from 4.0 to 6.0 GiB, of which 5.0 are averaging's and the network's; "
        "it starts again"
    )


def test_while_the_site_is_away_only_a_machine_without_memory_starts_its_peer_again(dog):
    dog.world.linked = False
    assert dog.look(Reading(GIB, 3 * GIB), PLENTY) == ""
    assert dog.look(Reading(GIB, 3 * GIB), 100 * MIB) != ""


def test_memory_that_others_took_starts_nobody_again(dog):
    assert dog.look(Reading(GIB, int(1.1 * GIB)), 100 * MIB) == ""


def test_a_peer_that_starts_again_hands_in_its_round_and_a_stop_is_stronger(tmp_path: Path):
    wishes = Wishes(tmp_path / "wish.json")
    wishes.start_again("its memory grew")
    now = wishes.current()
    assert (now.wish, now.cause) == (Wish.FINISH, LeaveCause.RESTARTING)
    wishes.site(Control(wish=Wish.PAUSE, reason="a break"))
    assert wishes.current().cause is LeaveCause.RESTARTING
    wishes.site(Control(wish=Wish.FINISH, reason="done", cause=LeaveCause.FINISHED))
    assert wishes.current().cause is LeaveCause.FINISHED
    wishes.stop("Ctrl-C")
    assert wishes.current().cause is LeaveCause.STOPPED
    assert Wishes(tmp_path / "wish.json").current().wish is Wish.RUN
