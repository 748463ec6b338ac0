"""The lab's page while an experiment runs: it moves by itself, and shows the result at its end."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.seeds import give_trials
from tests.browser.wait import until
from webapp.lab.models import Trial

pytestmark = pytest.mark.browser


def test_a_running_experiment_moves_and_then_shows_its_curves(site, log_in, page, olga):
    done, running = give_trials()
    log_in(olga)
    page.goto(f"{site.url}/console/lab/{running.pk}/")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "38")
    own = Trial.objects.filter(pk=running.pk)
    own.update(rounds_done=180, doing="local-only, seed 2")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "75")
    expect(page.get_by_role("status")).to_contain_text("local-only, seed 2")
    own.update(state="finished", result=done.result)
    expect(page.get_by_role("heading", name="What it says")).to_be_visible()
    until(page, "document.querySelector('[data-part=curves]').data?.length === 4")
    expect(page.locator("main")).to_contain_text("scaffold held up best, with each of 3 seeds")
