"""What comes between the page's first paint and its first frame."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.seeds import give_past
from tests.browser.wait import until
from webapp.live.models import Event
from webapp.live.services import add_event

pytestmark = pytest.mark.browser


def test_what_happens_between_the_first_paint_and_the_first_frame_is_shown(
    site, page, collaboration
):
    """The script comes late, so that its first frame is long after the page's event list."""

    def late(route):
        add_event(collaboration, Event.What.ROUND, "Round 349 is done")
        route.continue_()

    page.route("**/js/collaboration*.js", late)
    page.goto(f"{site.url}/c/demo/")
    expect(page.locator("[data-part=events]")).to_contain_text("Round 349 is done")


def test_a_round_that_ends_while_the_history_is_on_its_way_is_in_the_curve(
    site, join, page, collaboration
):
    give_past(collaboration)
    ada, held = join("ada2"), []

    def hold(route):
        """The first answers, one for each metric."""
        if len(held) == 2:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route("**/history?*", hold)
    page.goto(f"{site.url}/c/demo/")
    ada.progress(121, loss=3.2, samples=20)
    ada.finish_round(121, loss=3.05)
    expect(page.locator('[data-figure="last-round"]').first).to_contain_text("Round 121")
    assert len(held) == 2
    for route, answer in held:
        assert ",3.05]" not in answer.text()
        route.fulfill(response=answer)
    until(page, "document.querySelector('[data-part=chart]').data?.[0].x.at(-1) === 121")
    until(page, "document.querySelector('[data-part=chart]').data?.[0].x.length > 2")
