"""Waits for a condition in the page. Playwright's own needs `unsafe-eval`, which ours forbids."""

from __future__ import annotations

import time

from playwright.sync_api import Page

WITHIN_S = 20
EVERY_MS = 50


def until(page: Page, expression: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"still not true: {expression}"
        page.wait_for_timeout(EVERY_MS)
