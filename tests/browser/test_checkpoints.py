"""Checkpoints on the live page: each as it is written, and a warning when they stop."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.seeds import give_checkpoint, give_past

pytestmark = pytest.mark.browser


def test_a09_a_checkpoint_that_does_not_come_is_a_warning_until_the_next_one(
    site, join, page, collaboration
):
    give_past(collaboration)
    every = collaboration.recipe.round.checkpoint_every
    page.goto(f"{site.url}/c/demo/")
    warning = page.locator("[data-part=checkpoint-late]")
    expect(page.locator("[data-figure=checkpoint]")).to_contain_text("The last one is of round 100")
    expect(warning).to_be_hidden()
    ada = join("ada3")
    ada.finish_round(100 + 2 * every, loss=3.0)
    expect(warning).to_have_text(re.compile("Last checkpoint .* of round 100: the rounds since"))
    give_checkpoint(collaboration, 100 + 2 * every, "cd" * 32)
    expect(warning).to_be_hidden()
    newest = page.locator("[data-part=checkpoints] tr").first
    expect(newest).to_contain_text(f"{100 + 2 * every}")
    expect(newest.locator("a")).to_have_attribute("href", re.compile("cdcd"))
