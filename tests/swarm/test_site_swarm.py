"""The product as a newcomer gets it: one command, real rounds, and kills.

After `test_site_agents.py`, on the same site.
"""

from __future__ import annotations

import os
import signal
import socket

import pytest

from tests.swarm.parts import tree_of
from tests.swarm.site import REVOKE, Site, is_running
from tests.waiting import wait_for

pytestmark = pytest.mark.swarm


def credited_by_round(site):
    return dict(
        site.rows("select round, sum(samples) from credit_receipt where accepted group by round")
    )


def assert_credit_matches_rounds(site, rounds):
    """Each offer is credited once: per round, receipts add up to what the coordinator witnessed."""
    credited = credited_by_round(site)
    for number, samples in rounds:
        assert credited.get(number) == samples, f"round {number}: {credited.get(number)}/{samples}"


def witnessed(site, since=-1):
    return site.rows(
        "select round, samples from live_roundrecord where from_coordinator and round > "
        f"{since} and outcome in ('clean', 'alone') and samples > 0"
    )


def test_the_password_of_the_organiser_is_printed_once_and_kept_nowhere(site):
    lines = [line for line in site.log.read_text().splitlines() if "Organiser account" in line]
    assert len(lines) == 1
    password = lines[0].split("password ")[1].split()[0].encode()
    assert password not in b"".join(
        path.read_bytes() for path in site.data.rglob("*") if path.is_file()
    )


def test_a_second_up_says_where_the_first_one_runs(site):
    before = len(site.log.read_text())
    second = site.up()
    assert second.wait(60) != 0
    assert f"already running at {site.url}" in site.log.read_text()[before:]
    assert site.answers()


def test_a_port_in_use_is_named_with_the_setting_to_change(site, tmp_path):
    other = Site(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", other.port))
        taken.listen()
        assert other.up().wait(60) != 0
    said = other.log.read_text()
    assert f"port {other.port}" in said
    assert "HTTP_PORT=" in said


def test_an_agent_killed_in_a_round_is_shown_as_lost_and_the_round_completes(site):
    victim = site.agent("victoria")
    site.agent("walter")
    wait_for("three in training", lambda: site.get("collaborations/demo")["online"] >= 3)
    wait_for("a round of three", lambda: witnessed_members(site) >= 3)
    since = site.last_round()
    processes = tree_of(victim.pid)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    site.wait_for_rounds(2)
    wait_for("end of its processes", lambda: not any(map(is_running, processes)))
    wait_for(
        "event",
        lambda: any(event["what"] == "lost" for event in site.get("collaborations/demo/events")),
    )
    rounds = witnessed(site, since + 1)[:-1]
    wait_for("credit", lambda: credited_by_round(site).keys() >= dict(rounds).keys())
    assert_credit_matches_rounds(site, rounds)
    assert "victoria" in readers(site)  # for five minutes what it read is nobody else's
    assert site.rows("select sum(passes + position) from shards_shard")[0][0] > 0


def readers(site):
    """Names of the devices that parts of the text are leased to."""
    leased = "select device_id from shards_shard where device_id is not null"
    named = site.rows(f"select name from devices_device where id in ({leased})")
    return [name for (name,) in named]


def witnessed_members(site):
    found = site.rows("select members from live_roundrecord where from_coordinator order by -round")
    return found[0][0] if found else 0


def test_a_device_that_is_revoked_on_the_site_is_known_to_every_peer_within_a_minute(site):
    said = site.manage("shell", "-v", "0", "-c", REVOKE)
    device = said.split("revoked:", 1)[1].split()[0]

    def peers_that_know():
        lists = site.folder.rglob("revoked.json")
        return {path.parent for path in lists if device in path.read_text()}

    wait_for("word to coordinator and volunteer", lambda: len(peers_that_know()) >= 2)
    assert site.data / "coordinators" / "demo" in peers_that_know()


PARTS = ["uvicorn", "celery", "valkey-server", "manage.py coordinator", "trainer coordinate"]


def kill_and_recover(site, words):
    killed = site.program(words)
    killed.kill()
    wait_for(f"new {words}", lambda: site.program(words).pid != killed.pid)
    wait_for("an answer of the site", site.answers)


def assert_all_credit_arrives(site, since):
    rounds = witnessed(site, since)[:-1]
    wait_for("credit", lambda: credited_by_round(site).keys() >= dict(rounds).keys())
    assert_credit_matches_rounds(site, rounds)


@pytest.mark.parametrize(
    "lives", [1, pytest.param(5, marks=pytest.mark.soak)], ids=["once", "five times"]
)
def test_b11_killed_parts_come_back_and_no_credit_is_lost_or_doubled(site, lives):
    since = site.last_round()
    for words in PARTS * lives:
        kill_and_recover(site, words)
        if lives > 1:
            site.wait_for_rounds(1)
    site.wait_for_rounds(2)
    assert_all_credit_arrives(site, since)


@pytest.mark.parametrize(
    "seconds", [20, pytest.param(600, marks=pytest.mark.soak)], ids=["short", "ten minutes"]
)
def test_while_the_site_hangs_training_goes_on_and_every_report_arrives_once(site, seconds):
    site.wait_for_rounds(1)
    since = site.last_round()
    web = site.program("uvicorn")
    web.suspend()
    try:
        with pytest.raises(AssertionError, match="no answer"):
            wait_for("answer", site.answers, seconds)
    finally:
        web.resume()
    wait_for("an answer of the site", site.answers)
    site.wait_for_rounds(2)
    assert len(witnessed(site, since)) >= 2
    assert_all_credit_arrives(site, since)


def test_ctrl_c_leaves_no_process_and_a_second_start_goes_on_from_the_checkpoint(site):
    before = site.last_round()
    family = site.family()
    assert site.process is not None
    site.process.send_signal(signal.SIGINT)
    assert site.process.wait(60) == 0
    wait_for("end of every process", lambda: not any(map(is_running, family)))
    site.log.write_text("")
    site.start()
    site.wait_for_rounds(1)
    assert site.last_round() > before
    assert "Organiser account" not in site.log.read_text()
