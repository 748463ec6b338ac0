"""sahajBERT's way at reduced size, really walked: from one command to figures on a page."""

from __future__ import annotations

import json
import urllib.request

import pytest

from tests.swarm.site import Site
from tests.waiting import wait_for

pytestmark = [pytest.mark.swarm, pytest.mark.soak]
SLUG = "sahajbert-bn-small"
LAST = 30
LONGEST_S = 3000
STATE = f"select state from collaborations_collaboration where slug = '{SLUG}'"
BASELINES = {"all texts noun", "TF-IDF of characters and logistic regression"}


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    site.end()


def results(site: Site) -> dict[int, dict]:
    """By round."""
    rows = site.rows("select round, result from evaluations_evaluation where state = 'finished'")
    return {number: json.loads(result) for number, result in rows}


def test_one_command_makes_the_tokenizer_trains_with_three_agents_evaluates_and_shows_it(site):
    site.process = site.up("--recipe", "sahajbert-bn", "--offline", "--volunteers", "3")
    wait_for("ready line", lambda: site.readiness() or site.died(), LONGEST_S)
    assert site.process.poll() is None, site.log.read_text()
    wait_for("end", lambda: ("finished",) in site.rows(STATE), LONGEST_S)
    assert site.rows("select state, json_extract(made, '$.size') from tokenizers_making") == [
        ("finished", 8000)
    ]
    trained = site.rows(
        "select count(distinct d.id), count(*) from credit_receipt r join devices_session s on "
        "s.id = r.session_id join devices_device d on d.id = s.device_id where r.accepted"
    )
    assert trained[0][0] == 3 and trained[0][1] >= LAST
    losses = site.rows(
        "select held_out_loss from live_roundrecord where held_out_loss is not null order by round"
    )
    assert losses[-1][0] < losses[0][0]
    wait_for("evaluation of the last checkpoint", lambda: LAST in results(site), LONGEST_S)
    found = results(site)[LAST]
    assert found["scores"]["accuracy"]["n"] == 3 and found["scores"]["accuracy"]["std"] is not None
    with urllib.request.urlopen(f"{site.url}/c/{SLUG}/evaluations/", timeout=60) as reply:
        page = reply.read().decode()
    assert "Noun or adjective" in page and f"Round {LAST}" in page and "n = 3" in page
    assert {one["name"] for one in found["baselines"]} == BASELINES
    assert all(name in page for name in BASELINES)
