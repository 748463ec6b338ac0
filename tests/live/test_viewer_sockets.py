"""What browsers see: the same numbers for all, private frames for oneself, from the site only."""

from __future__ import annotations

import asyncio

from channels.db import database_sync_to_async
from django.test import Client

from tests.factories import make_collaboration, make_device
from tests.live.agents import Agent, Viewer, cookie_of, receipt
from webapp.accounts.services import set_listed
from webapp.collaborations import services as collaborations
from webapp.live import beat, selectors, viewer_sockets
from webapp.live.mailbox import Mailbox


async def test_a_viewer_gets_a_snapshot_and_then_frames_that_extend_it(live, token):
    viewer = Viewer()
    assert await viewer.connect()
    first = await viewer.frame()
    assert (first["kind"], first["slug"], first["online"], first["target"]) == (
        "snapshot",
        "demo",
        0,
        64,
    )
    agent = Agent(token)
    await agent.join()
    await agent.train(3, samples=16, loss=4.5)
    await viewer.sees(lambda viewer: viewer.state["loss"] == 4.5)
    assert viewer.state["samples"] == 16
    assert [row["name"] for row in viewer.state["members"]] == ["alice"]
    assert [(event["what"], event["who"]) for event in viewer.events] == [("joined", "alice")]


async def test_a_finished_round_extends_the_curve_without_a_reload(live, token):
    viewer = Viewer()
    await viewer.connect()
    agent = Agent(token)
    await agent.join()
    await agent.report(1, receipt(0, loss=4.25))
    await viewer.sees(lambda viewer: 0 in viewer.rounds)
    assert viewer.rounds[0]["loss"] == 4.25
    await viewer.sees(lambda viewer: viewer.state["last_round"] is not None)
    assert viewer.state["last_round"]["round"] == 0
    await viewer.sees(lambda viewer: viewer.state["effort"]["samples"] == 64)
    await viewer.sees(lambda viewer: viewer.state["state"] == "running")
    assert viewer.state["effort"]["participants"] == 1


async def test_two_browsers_and_the_api_see_the_same_numbers(live, token, collaboration):
    one, two = Viewer(), Viewer()
    await one.connect()
    agent = Agent(token)
    await agent.join()
    await agent.train(3, samples=16, loss=4.5)
    await one.sees(lambda viewer: viewer.state["loss"] == 4.5)
    await two.connect()
    await two.sees(lambda viewer: viewer.state.get("loss") == 4.5)
    while one.state["seq"] < two.state["seq"]:
        await one.frame()
    while two.state["seq"] < one.state["seq"]:
        await two.frame()
    ignored = {"kind", "at"}
    shown = [{k: v for k, v in each.state.items() if k not in ignored} for each in (one, two)]
    assert shown[0] == shown[1]
    api = await database_sync_to_async(selectors.snapshot)(collaboration)
    assert api["members"] == one.state["members"]


async def test_a_viewer_that_reads_slowly_is_sent_a_snapshot_instead_of_a_gap(live, token):
    slow = Mailbox()
    await live.enter("demo", slow)
    room = live.rooms["demo"]
    seq = room.seq
    viewer = Viewer()
    await viewer.connect()
    await viewer.sees(lambda viewer: viewer.state["seq"] > seq + 3)
    text = await slow.take()
    assert '"kind":"snapshot"' in text
    assert f'"seq":{room.seq}' in text


async def test_an_unlisted_volunteer_appears_as_anonymous_everywhere(live, alice, token):
    viewer = Viewer()
    await viewer.connect()
    agent = Agent(token)
    await agent.join()
    await viewer.sees(lambda viewer: viewer.state.get("members"))
    await database_sync_to_async(set_listed)(alice, is_listed=False)
    await viewer.sees(lambda viewer: viewer.state["members"][0]["name"] == "anonymous")


async def test_the_state_and_its_reason_reach_viewers_at_once(live, collaboration, olga):
    viewer = Viewer()
    await viewer.connect()
    await viewer.frame()
    await database_sync_to_async(collaborations.pause)(collaboration, by=olga, reason="power cut")
    await viewer.sees(lambda viewer: viewer.state["state"] == "paused")
    assert viewer.state["state_reason"] == "power cut"
    await viewer.sees(lambda viewer: viewer.events)
    assert viewer.events[0]["text"] == "paused: power cut"


async def test_without_such_a_collaboration_the_socket_is_closed_politely(live):
    viewer = Viewer("/ws/c/nowhere/")
    assert await viewer.connect()
    assert await viewer.close_code() == 4404


async def test_a_draft_has_no_public_socket_even_while_its_devices_are_there(live, olga):
    draft = await database_sync_to_async(make_collaboration)("draft", state="draft")
    _, token = await database_sync_to_async(make_device)(olga)
    agent = Agent(token)
    await agent.join(draft.slug)
    async with asyncio.timeout(15):
        while live.rooms["draft"].facts is None:
            await asyncio.sleep(0.01)
    viewer = Viewer("/ws/c/draft/")
    assert await viewer.connect()
    assert await viewer.close_code() == 4404


async def test_an_unknown_path_is_closed_politely(live):
    viewer = Viewer("/ws/nonsense/")
    assert await viewer.connect()
    assert await viewer.close_code() == 4404


async def test_private_frames_tell_a_person_of_their_own_devices_only(live, browser, token, olga):
    others = Client()
    await database_sync_to_async(others.force_login)(olga)
    mine, theirs = (Viewer("/ws/me/", cookie_of(client)) for client in (browser, others))
    await mine.connect()
    await theirs.connect()
    agent = Agent(token)
    await agent.join()
    await agent.train(3, samples=16, loss=4.5)
    await mine.sees(
        lambda viewer: (
            [row["samples"] for row in viewer.state["devices"]] == [16]
            if viewer.state.get("devices")
            else False
        )
    )
    assert (await theirs.frame())["devices"] == []


async def test_a_tab_of_nobody_gets_no_private_frames(live, collaboration):
    viewer = Viewer("/ws/me/")
    await viewer.connect()
    assert await viewer.close_code() == 4401


async def test_a_logged_out_tab_stops_receiving_private_frames(live, browser):
    tab = Viewer("/ws/me/", cookie_of(browser))
    await tab.connect()
    await tab.frame()
    await database_sync_to_async(browser.logout)()
    assert await tab.close_code() == 4401


async def test_a_log_out_in_another_browser_leaves_this_tab_alone(live, browser, alice):
    other = Client()
    await database_sync_to_async(other.force_login)(alice)
    tab, gone = (Viewer("/ws/me/", cookie_of(client)) for client in (browser, other))
    await tab.connect()
    await gone.connect()
    await tab.frame()
    await database_sync_to_async(other.logout)()
    await gone.close_code()
    assert [mailbox.user_id for mailbox in live.people] == [alice.pk]


async def test_a_person_who_was_shut_out_stops_receiving(live, browser, alice, monkeypatch):
    monkeypatch.setattr(viewer_sockets, "LOGIN_CHECK_EVERY_S", 0.05)
    tab = Viewer("/ws/me/", cookie_of(browser))
    await tab.connect()
    await tab.frame()
    alice.is_active = False
    await alice.asave()
    assert await tab.close_code() == 4401


async def test_a_page_shows_an_act_at_once_although_a_frame_was_just_made(
    live, collaboration, olga, monkeypatch
):
    viewer = Viewer()
    await viewer.connect()
    await viewer.sees(lambda viewer: live.rooms["demo"].shown.get("state") == "open")
    monkeypatch.setattr(beat, "FACTS_EVERY_S", 600)
    await database_sync_to_async(collaborations.pause)(collaboration, by=olga, reason="moving")
    live.rooms["demo"].shown |= {"state": "open", "state_reason": ""}
    shown = await database_sync_to_async(selectors.snapshot)(collaboration)
    assert (shown["state"], shown["state_reason"]) == ("paused", "moving")
