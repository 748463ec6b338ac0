"""The link against a real websocket server: once each, whatever breaks."""

from __future__ import annotations

import io
import itertools

import pytest

from tests.trainer.fake_site import FakeSite
from tests.trainer.test_spool import OTHER, SESSION, body
from tests.waiting import wait_for
from trainer.agent import link as link_module
from trainer.agent.link import Link, delay_s
from trainer.agent.main import Session
from trainer.agent.seat import Seat
from trainer.agent.spool import Spool, earlier_sessions
from trainer.agent.view import PlainView
from trainer.agent.wishes import Wishes
from trainer.wire import Activity, Bye, Control, Hello, LeaveCause, Progress, Refused, Wish


@pytest.fixture
def site():
    site = FakeSite().start()
    yield site
    site.stop()


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Links that come back quickly; closed at the end."""
    monkeypatch.setattr(link_module, "FIRST_DELAY_S", 0.4)
    monkeypatch.setattr(link_module, "LONGEST_DELAY_S", 1.2)
    made = []

    def make(site, session=SESSION):
        spool = Spool(tmp_path, session)
        wishes = Wishes(tmp_path / "wish.json")
        hello = Hello(version=1, agent_version="0", session=session, collaboration="demo")
        link = Link(
            site.url,
            "a-secret-token",
            hello=hello,
            spool=spool,
            earlier=earlier_sessions(tmp_path, session),
            wishes=wishes,
            changed=make.said.append,
        )
        link.start()
        made.append(link)
        return link, spool, wishes

    make.said = []
    yield make
    for link in made:
        link.close(2)


def numbers(site, session=SESSION):
    return [report.body.round for report in site.stored[session] if report.body.kind != "bye"]


def add(link, spool, *rounds):
    for number in rounds:
        spool.add(body(number))
        link.wake()


def test_reports_arrive_in_order_and_are_forgotten_when_stored(site, make):
    link, spool, _ = make(site)
    add(link, spool, *range(300))
    wait_for("all", lambda: len(site.stored[SESSION]) == 300)
    wait_for("acknowledgement", lambda: not spool.num_waiting)
    assert numbers(site) == list(range(300))
    assert site.tokens == ["Bearer a-secret-token"]


def test_while_the_site_is_down_reports_wait_and_then_arrive_exactly_once(site, make):
    link, spool, _ = make(site)
    add(link, spool, 0, 1)
    wait_for("two", lambda: len(site.stored[SESSION]) == 2)
    for number in range(3):
        site.stop()
        add(link, spool, 2 + 2 * number, 3 + 2 * number)
        assert spool.num_waiting >= 2
        site.start()
        wait_for("the rest", lambda n=number: len(site.stored[SESSION]) == 4 + 2 * n)
    wait_for("acknowledgement", lambda: not spool.num_waiting)
    assert numbers(site) == list(range(8))
    assert len(site.hellos) >= 4
    assert {hello.session for hello in site.hellos} == {SESSION}


def test_what_was_stored_but_never_acknowledged_is_not_doubled(site, make):
    site.acknowledges = False
    link, spool, _ = make(site)
    add(link, spool, 0, 1, 2)
    wait_for("three", lambda: len(site.stored[SESSION]) == 3)
    site.stop()
    site.acknowledges = True
    add(link, spool, 3)
    site.start()
    wait_for("acknowledgement", lambda: not spool.num_waiting)
    assert numbers(site) == [0, 1, 2, 3]
    assert site.num_received == 4


def test_reports_are_sent_again_when_no_acknowledgement_comes(site, make, monkeypatch):
    monkeypatch.setattr(link_module, "RESEND_S", 0.3)
    site.acknowledges = False
    link, spool, _ = make(site)
    add(link, spool, 0, 1)
    wait_for("a repetition", lambda: site.num_received >= 4)
    site.acknowledges = True
    wait_for("acknowledgement", lambda: not spool.num_waiting)
    assert numbers(site) == [0, 1]


def test_what_a_killed_session_left_is_delivered_first_under_its_own_name(site, make, tmp_path):
    left = Spool(tmp_path, OTHER)
    left.add(body(7))
    left.add(body(8))
    link, spool, _ = make(site)
    add(link, spool, 0)
    wait_for("own report", lambda: site.stored[SESSION])
    assert [hello.session for hello in site.hellos] == [OTHER, SESSION]
    assert numbers(site, OTHER) == [7, 8]
    assert site.stored[OTHER][-1].body.kind == "bye"
    assert not left.path.exists()


def test_progress_is_sent_at_most_once_a_second_and_the_newest_wins(site, make):
    link, _, _ = make(site)
    wait_for("hello", lambda: site.hellos)
    for number in range(200):
        link.progress(Progress(round=0, samples=number, activity=Activity.TRAINING))
    wait_for("the newest", lambda: site.progress and site.progress[-1][1].samples == 199)
    assert len(site.progress) <= 3
    times = [at for at, _ in site.progress]
    assert all(b - a > 0.9 for a, b in itertools.pairwise(times))


def test_the_sites_control_reaches_the_wishes(site, make):
    _, _, wishes = make(site)
    wait_for("hello", lambda: site._sockets)
    banned = Control(wish=Wish.STOP, cause=LeaveCause.BANNED, reason="made-up samples")
    site.send(banned)
    wait_for("the ban", lambda: wishes.current() == banned)


@pytest.mark.parametrize("cause", [LeaveCause.BANNED, LeaveCause.REVOKED])
def test_who_is_shut_out_is_told_why_and_nothing_else(site, make, tmp_path, cause):
    link, spool, wishes = make(site)
    wait_for("hello", lambda: site._sockets)
    site.send(Control(wish=Wish.STOP, cause=cause, reason="made-up samples"))
    wait_for("the ban", lambda: wishes.shut_out)
    site.refusal = Refused(reason="Never again.", cause=cause)
    site.shut(4403)
    wait_for("the end of the link", lambda: not link._thread.is_alive())
    assert make.said == [""]
    assert wishes.current().reason == "made-up samples"
    assert len(site.hellos) == 1
    said = io.StringIO()
    session = Session(
        Seat(site=site.url, token="t", slug="demo", cache=tmp_path, folder=tmp_path),
        PlainView("Potluck", None, said),
    )
    session._wishes = wishes
    session._leave(spool, link, cause, "made-up samples")
    assert "1 report is kept on disk: the site takes none" in said.getvalue()
    assert "next start" not in said.getvalue()


def test_a_refusal_without_a_way_back_ends_the_session_with_its_words(site, make):
    site.refusal = Refused(
        reason="This agent speaks version 0.", next_step="Download a new launcher."
    )
    _, _, wishes = make(site)
    wait_for("stop", lambda: wishes.current().wish is Wish.STOP)
    assert wishes.current().reason == "This agent speaks version 0. Download a new launcher."
    assert len(site.hellos) == 1


def test_a_refusal_with_a_time_is_followed_by_another_try(site, make):
    site.refusal = Refused(reason="The site is busy.", retry_after_s=0.2)
    link, spool, wishes = make(site)
    wait_for("first try", lambda: site.hellos)
    site.refusal = None
    add(link, spool, 0)
    wait_for("the report", lambda: site.stored[SESSION])
    assert wishes.current().wish is Wish.RUN


def test_closing_says_goodbye_and_leaves_nothing_behind(site, make):
    link, spool, _ = make(site)
    add(link, spool, 0)
    spool.add(Bye(cause=LeaveCause.STOPPED))
    assert link.close(5)
    assert site.stored[SESSION][-1].body.kind == "bye"


def test_closing_while_the_site_is_down_keeps_the_goodbye_for_the_next_start(site, make, tmp_path):
    link, spool, _ = make(site)
    wait_for("hello", lambda: site.hellos)
    site.stop()
    spool.add(Bye(cause=LeaveCause.STOPPED))
    assert not link.close(3)
    site.start()
    make(site, OTHER)
    wait_for("goodbye", lambda: site.stored[SESSION])


def test_b05_agents_come_back_spread_over_five_seconds_or_more():
    delays = [delay_s(0) for _ in range(200)]
    assert max(delays) - min(delays) >= 5
    assert max(delay_s(20) for _ in range(200)) <= link_module.LONGEST_DELAY_S
