"""The last round on the live page: it follows while somebody looks."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_the_live_page_tells_the_newest_round_device_by_device(site, join, page, collaboration):
    page.goto(f"{site.url}/c/demo/")
    told = page.locator("[data-part=round]")
    told.scroll_into_view_if_needed()
    expect(told).to_contain_text("After the first round, this tells who took part")
    join("ada").finish_round(0, loss=4.4, told="the model is the mean", mean_norm=0.5)
    expect(told.locator("tbody")).to_contain_text("ada")
    expect(told).to_contain_text("Round 0: one peer")
    expect(told).to_contain_text("The model is the mean. (A member says so")
