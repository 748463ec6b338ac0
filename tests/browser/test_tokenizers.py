"""A tokenizer's pages: progress moves by itself, and a text is shown in pieces."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.seeds import give_tokenizers
from webapp.tokenizers.models import Making

pytestmark = pytest.mark.browser


def test_one_that_is_made_moves_and_then_cuts_a_text_into_pieces(
    site, log_in, page, olga, tmp_path
):
    ready, running = give_tokenizers(tmp_path)
    log_in(olga)
    page.goto(f"{site.url}/console/tokenizers/making/{running.pk}/")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "38")
    own = Making.objects.filter(pk=running.pk)
    own.update(share=0.75, doing="12,000 pieces, of which 395 may stay")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "75")
    expect(page.get_by_role("status")).to_contain_text("12,000 pieces")
    done = Making.objects.get(artifact=ready)
    own.update(state="finished", artifact=ready, made=done.made)
    page.get_by_role("link", name="Try it").click()
    expect(page.locator("main")).to_contain_text("its normal form, pieces and ids appear here")
    page.get_by_label("Text").fill("আষাঢ় মাসে   বাড়ির ২৫ জন |  ☃")
    page.get_by_role("button", name="Cut it").click()
    expect(page.locator(".written")).to_have_text("আষাঢ় মাসে বাড়ির ২৫ জন । ☃")
    expect(page.locator(".pieces .unknown")).to_contain_text("unknown")
    expect(page.locator(".pieces li").first).to_contain_text("[CLS]")
    assert page.locator(".pieces li", has_text="২").count() == 1
    assert Axe().run(page).response["violations"] == []
