"""What comes between the page's first paint and its first frame."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

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
