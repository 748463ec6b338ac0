"""Every page for everybody: axe finds nothing, nothing scrolls sideways, nothing errs."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.seeds import give_evaluations, give_past, give_tokenizers, give_trials
from tests.browser.wait import until
from tests.factories import make_collaboration

pytestmark = pytest.mark.browser
VISITOR = [
    "/",
    "/c/",
    "/c/demo/",
    "/c/demo/rounds/120/",
    "/c/demo/checkpoints/",
    "/c/demo/evaluations/",
    "/leaderboard/",
    "/docs/volunteer/",
    "/docs/organiser/",
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/password/reset/",
    "/nothing/",
]
ORGANISER = [
    "/",
    "/me/",
    "/me/devices/",
    "/c/demo/join/",
    "/c/demo/checkpoints/",
    "/c/demo/evaluations/",
    "/console/",
    "/console/create/",
    "/console/audit/",
    "/console/people/",
    "/console/lab/",
    "/console/tokenizers/",
    "/console/c/demo/",
    "/console/c/night/",
    "/console/c/demo/data/",
    "/console/c/night/edit/",
    "/accounts/email/",
    "/accounts/password/change/",
    "/accounts/2fa/",
]
SIZES = {"phone": (360, 780), "desktop": (1280, 900)}


@pytest.mark.parametrize(
    ("size", "theme"),
    [
        ("phone", "dark"),
        ("desktop", "light"),
        pytest.param("phone", "light", marks=pytest.mark.soak),
        pytest.param("desktop", "dark", marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("who", ["visitor", "organiser"])
def test_pages_are_accessible_and_fit(
    site, join, log_in, page, olga, collaboration, size, theme, who, tmp_path
):
    give_past(collaboration)
    give_evaluations(collaboration)
    make_collaboration("night", state="draft")
    jobs = [f"/console/lab/{trial.pk}/" for trial in give_trials()]
    ready, running = give_tokenizers(tmp_path)
    jobs += [f"/console/tokenizers/{ready.pk}/", f"/console/tokenizers/making/{running.pk}/"]
    jobs += [f"/c/demo/checkpoints/{collaboration.checkpoints.first().pk}/"]
    join("zoe").progress(121)
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size(dict(zip(("width", "height"), SIZES[size], strict=True)))
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: said.type == "error" and errors.append(said.text))
    if who == "organiser":
        log_in(olga)
    problems = {}
    for path in VISITOR if who == "visitor" else ORGANISER + jobs:
        page.goto(site.url + path)
        if page.locator("[data-part=chart]").count():
            until(page, "document.querySelector('[data-part=chart]').data !== undefined")
        found = _problems(page)
        if found:
            problems[path] = found
    assert problems == {}
    assert [error for error in errors if "404" not in error] == []


def _problems(page) -> list[str]:
    found = [
        f"{problem['id']}: {place['html'][:200]} {place['failureSummary'][:200]}"
        for problem in Axe().run(page).response["violations"]
        for place in problem["nodes"][:1]
    ]
    wide = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return found + ([f"scrolls sideways by {wide} px"] if wide > 0 else [])


def test_the_launcher_page_is_accessible_once_made(site, log_in, page, alice, collaboration):
    log_in(alice)
    page.goto(f"{site.url}/c/demo/join/")
    page.get_by_role("button", name="Make my launcher").click()
    page.get_by_text("A machine without a desktop").click()
    assert _problems(page) == []
