"""The live page: it moves by real frames, says when it is stale, and stays small."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.seeds import give_past
from tests.browser.wait import until

pytestmark = pytest.mark.browser
POINTS = "document.querySelector('[data-part=chart]').data?.[0].x.length"


def figure(page, name):
    return page.locator(f'[data-figure="{name}"]').first


def test_the_page_moves_by_what_an_agent_reports_without_reload(site, join, page, collaboration):
    page.goto(f"{site.url}/c/demo/")
    expect(page.locator("[data-part=chart-empty]")).to_contain_text("after the first round")
    expect(page.locator("[data-part=nobody]")).to_be_visible()
    ada = join("ada")
    ada.progress(0, loss=4.5, samples=16)
    expect(figure(page, "peers")).to_have_text("1")
    expect(figure(page, "loss")).to_have_text("4.5")
    expect(figure(page, "progress")).to_contain_text("16 of 64 samples")
    expect(page.locator("[data-part=members]")).to_contain_text("ada")
    expect(page.locator("[data-part=events]")).to_contain_text("ada joined")
    ada.finish_round(0, loss=4.4)
    ada.finish_round(1, loss=4.1)
    ada.progress(2, loss=4.0, samples=1, link_mbit_s=52.3, share=0.384)
    expect(figure(page, "round")).to_have_text("2")
    expect(page.locator("[data-part=members] tr")).to_contain_text("38 %")
    expect(page.locator("[data-part=members] tr")).to_contain_text("52.3")
    expect(figure(page, "last-round")).to_contain_text("Round 1: one peer. 64 samples")
    expect(page.locator("[data-part=strip] .alone")).to_have_count(2)
    until(page, f"{POINTS} === 2")
    expect(figure(page, "state")).to_have_text("Training alone")
    ada.finish_round(2, loss=3.9, members=3, asked=4)
    expect(figure(page, "last-round")).to_contain_text("Round 2: complete. 3 of 4 chosen peers")
    ada.leave()
    expect(page.locator("[data-part=events]")).to_contain_text("ada left")


def test_two_browsers_see_the_same_numbers(site, join, browser, collaboration):
    give_past(collaboration)
    ada, bob = join("ada2"), join("bob2")
    pages = [browser.new_context().new_page() for _ in range(2)]
    for page in pages:
        page.goto(f"{site.url}/c/demo/")
    ada.progress(121, loss=3.2, samples=20)
    bob.progress(121, loss=3.0, samples=20)
    ada.finish_round(121, loss=3.05)
    for page in pages:
        expect(figure(page, "peers")).to_have_text("2")
        expect(figure(page, "loss")).to_have_text("3.1")
        expect(figure(page, "progress")).to_contain_text("40 of 64")
        expect(figure(page, "last-round")).to_contain_text("Round 121")
        until(page, "document.querySelector('[data-part=chart]').data?.[0].x.at(-1) === 121")
    seen = [
        page.evaluate(
            "[...document.querySelectorAll('[data-figure]')]"
            ".filter(e => e.dataset.figure !== 'fresh').map(e => e.textContent)"
        )
        for page in pages
    ]
    assert seen[0] == seen[1]
    for page in pages:
        page.context.close()


def test_with_the_site_away_the_page_says_since_when_and_recovers(site, join, page, collaboration):
    give_past(collaboration)
    page.goto(f"{site.url}/c/demo/")
    expect(page.locator("[data-part=fresh]")).to_contain_text("updated")
    expect(figure(page, "round")).to_have_text("121")
    site.stop()
    notice = page.locator("[data-part=stale]")
    expect(notice).to_have_text(re.compile(r"the numbers are from \d\d:\d\d:\d\d"))
    expect(figure(page, "round")).to_have_text("121")
    collaboration.rounds.create(
        round=121,
        outcome="clean",
        members=1,
        samples=64,
        tokens=640,
        loss=2.5,
        at=collaboration.started_at,
    )
    site.restart_on_same_port()
    expect(notice).to_be_hidden(timeout=40_000)
    until(page, "document.querySelector('[data-part=chart]').data?.[0].x.at(-1) === 121")
    expect(figure(page, "last-round")).to_contain_text("Round 121")


def test_with_only_the_socket_cut_the_page_polls(site, page, collaboration):
    page.add_init_script(
        "window.WebSocket = class { static OPEN = 1; readyState = 3; close() {}"
        " constructor() { setTimeout(() => this.onclose({code: 1006}), 50) } }"
    )
    page.goto(f"{site.url}/c/demo/")
    expect(page.locator("[data-part=stale]")).to_be_visible()
    collaboration.state, collaboration.state_reason = "paused", "a test of the page"
    collaboration.save()
    expect(figure(page, "why")).to_have_text("a test of the page")


def test_a_hidden_page_listens_to_nothing_and_catches_up(site, page, collaboration):
    page.add_init_script("""
      let hidden = false;
      Object.defineProperty(document, 'hidden', { get: () => hidden });
      window.hide = (value) => {
        hidden = value;
        document.dispatchEvent(new Event('visibilitychange'));
      };
      const Real = WebSocket;
      window.sockets = [];
      window.WebSocket = class extends Real {
        constructor(url) { super(url); window.sockets.push(this); }
      };
    """)
    page.goto(f"{site.url}/c/demo/")
    expect(page.locator("[data-part=fresh]")).to_contain_text("updated")
    page.evaluate("hide(true)")
    until(page, "window.sockets.every(socket => socket.readyState >= 2)")
    collaboration.state, collaboration.state_reason = "paused", "while you were away"
    collaboration.save()
    page.evaluate("hide(false)")
    expect(figure(page, "why")).to_have_text("while you were away")


def test_a13_hostile_names_in_frames_stay_text(site, join, page, collaboration):
    dialogs, errors = [], []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: errors.append(str(error)))
    attack = "<img src=x onerror=alert(1)>"
    page.goto(f"{site.url}/c/demo/")
    ada = join(attack, device='"}]},{"y":[9')
    ada.progress(0, reason="</script><script>alert(2)</script>")
    expect(page.locator("[data-part=members]")).to_contain_text(attack)
    expect(page.locator("[data-part=members]")).to_contain_text("<script>alert(2)</script>")
    expect(page.locator("[data-part=events]")).to_contain_text(attack)
    page.reload()
    expect(page.locator("[data-part=events]")).to_contain_text(attack)
    assert dialogs == [] and errors == [] and page.locator("main img").count() == 0


def test_figures_read_the_same_in_the_browser_as_in_python(site, page, collaboration):
    from tests.web.test_pages_figures import TABLE

    page.goto(f"{site.url}/c/demo/")
    seen = page.evaluate(
        """async (table) => {
      const figures = await import("figures");
      return Object.fromEntries(Object.entries(table).map(([name, rows]) =>
        [name, rows.map(([value]) => [value, figures[name](value)])]));
    }""",
        json.loads(json.dumps(TABLE)),
    )
    assert seen == TABLE


def test_the_theme_is_kept_and_colours_of_the_curve_follow(site, page, collaboration):
    give_past(collaboration)
    page.goto(f"{site.url}/c/demo/")
    until(page, f"{POINTS} > 0")
    colour = "document.querySelector('[data-part=chart]').data[1].line.color"
    before = page.evaluate(colour)
    button = page.locator(".theme")
    button.click()
    button.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    until(page, f"{colour} !== {json.dumps(before)}")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
