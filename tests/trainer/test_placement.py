"""A device whose owner did not pick a collaboration: where it goes first, and when it moves on."""

from __future__ import annotations

import json

import pytest

from tests.answering import Answering
from tests.waiting import wait_for
from trainer.agent.join import Api
from trainer.agent.placement import Mover, wait_for_place
from trainer.agent.seat import volunteer_seat
from trainer.agent.wishes import Wishes
from trainer.launcher import web
from trainer.launcher.machine import facts
from trainer.launcher.place import make_folder, store_device
from trainer.wire import Control, LeaveCause, Wish

NONE = {"collaboration": "", "title": "", "reason": "No collaboration is open now."}
DEMO = {"collaboration": "demo", "title": "Demo", "reason": "This one needs it most."}
OTHER = {"collaboration": "other", "title": "Other", "reason": "This one needs it most."}


class PlacingSite(Answering):
    """Gives what `answers` holds, the last one for ever."""

    def __init__(self, *answers: tuple[int, dict[str, str]]) -> None:
        self.answers, self.bodies = list(answers), []

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        assert (method, path) == ("POST", "/api/v1/device/placement")
        self.bodies.append(json.loads(body))
        status, content = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return status, json.dumps(content).encode()


@pytest.fixture
def site(request):
    made = PlacingSite(*request.param).start()
    yield made
    made.stop()


def sites(*answers):
    return pytest.mark.parametrize("site", [answers], indirect=True)


@sites((200, NONE), (500, {}), (200, NONE), (200, DEMO))
def test_it_waits_until_the_site_has_one_for_it_and_says_why(site, capsys):
    pauses: list[float] = []
    assert wait_for_place(site.url, "t" * 43, pauses.append) == "demo"
    assert len(pauses) == 3 and all(20 < pause < 90 for pause in pauses)
    said = capsys.readouterr().out
    assert said.startswith("No collaboration is open now. It goes on asking.\n")
    assert said.endswith("The site gave this device Demo. This one needs it most.\n")
    assert site.bodies[0]["machine"]["memory_bytes"] == facts()["memory_bytes"]


@sites((401, {"error": "The site knows no such device."}))
def test_a_device_that_the_site_does_not_take_asks_once(site):
    with pytest.raises(web.Refusal, match="no such device"):
        wait_for_place(site.url, "t" * 43, pytest.fail)


def test_the_collaboration_is_the_one_named_or_enrolled_for_and_else_the_sites_choice(tmp_path):
    url = "http://site.test"

    def seat(named):
        return volunteer_seat(tmp_path, url, named, place=lambda site, token: f"of-{token[:3]}")

    for enrolled_for in ("demo", ""):
        store_device(make_folder(tmp_path), url, {"token": "t" * 43, "collaboration": enrolled_for})
        assert (seat("other").slug, seat("other").is_placed) == ("other", False)
        assert (seat("").slug, seat("").is_placed) == ("of-ttt", True)
        found = seat(None)
        expected = ("demo", False) if enrolled_for else ("of-ttt", True)
        assert (found.slug, found.is_placed) == expected


@sites((200, NONE), (200, DEMO), (503, {}), (200, OTHER))
def test_it_moves_on_when_the_site_pauses_its_collaboration_and_has_another(site, tmp_path):
    wishes = Wishes(tmp_path / "wish.json")
    mover = Mover(Api(site.url, "t" * 43), "demo", wishes, wait_s=lambda: 0.02)
    mover.start()
    wishes.site(Control(wish=Wish.PAUSE, reason="The organiser paused it."))
    wait_for("the move", lambda: wishes.current().wish is Wish.FINISH)
    mover.stop()
    assert wishes.current().cause is LeaveCause.RESTARTING
    assert wishes.current().reason == "It moves on to Other. This one needs it most."
    assert len(site.bodies) == 4


@sites((200, OTHER))
def test_it_stays_while_it_trains_and_while_its_owner_pauses_it(site, tmp_path):
    wishes = Wishes(tmp_path / "wish.json")
    asked: list[Wish] = []

    def wait_s() -> float:
        asked.append(wishes.current().wish)
        return 0.02

    mover = Mover(Api(site.url, "t" * 43), "demo", wishes, wait_s)
    mover.start()
    wait_for("looks while it trains", lambda: asked.count(Wish.RUN) > 3)
    wishes.volunteer(Wish.PAUSE)
    wishes.site(Control(wish=Wish.PAUSE, reason="The organiser paused it."))
    wait_for("looks while both pause", lambda: asked.count(Wish.PAUSE) > 3)
    mover.stop()
    assert site.bodies == []


def test_a_collaboration_that_ended_is_told_from_one_that_goes_on(tmp_path):
    wishes = Wishes(tmp_path / "wish.json")
    assert not wishes.is_over
    wishes.site(Control(wish=Wish.PAUSE))
    assert not wishes.is_over
    wishes.site(Control(wish=Wish.FINISH, cause=LeaveCause.FINISHED))
    assert wishes.is_over
    wishes.stop("Ctrl-C")
    assert not wishes.is_over
