"""The page of ten batches, filled in: it fits a phone and says its marks in words, too."""

from __future__ import annotations

import pytest

from tests.browser.test_pages_look import _problems
from tests.web.test_data import PAGE, made  # noqa: F401 - a fixture

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [360, 1280])
def test_ten_batches_fit_and_are_accessible(site, log_in, page, olga, made, width):  # noqa: F811
    page.set_viewport_size({"width": width, "height": 800})
    log_in(olga)
    page.goto(site.url + PAGE)
    page.set_default_timeout(90_000)  # the answer comes when the batches are made
    page.get_by_role("button", name="Look").click()
    page.get_by_role("heading", name="Batch 10").wait_for()
    assert page.locator("mark").count() > 10
    assert _problems(page) == []
