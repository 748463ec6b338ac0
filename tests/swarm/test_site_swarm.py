"""The product as a newcomer gets it: one command, a demo volunteer, real rounds, and kills."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import closing

import psutil
import pytest

from tests.swarm.parts import parts_of, shared_memory_of, sockets_of
from tests.swarm.site import REVOKE, Site, is_running
from tests.swarm.slow_link import FIRST_BYTES, SlowLink
from tests.waiting import wait_for

pytestmark = pytest.mark.swarm


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """One running site for the tests below, which go from gentle to rough."""
    site = Site(tmp_path_factory.mktemp("site"))
    site.start()
    yield site
    site.end()


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


def test_the_demo_volunteer_trains_and_is_credited(site):
    site.wait_for_rounds(2)
    wait_for("state", lambda: site.get("collaborations/demo")["state"] == "running")
    snapshot = site.get("collaborations/demo")
    assert snapshot["last_round"]["outcome"] in ("clean", "alone")
    assert snapshot["last_round"]["loss"] > 0
    assert [row["name"] for row in site.get("leaderboard")["rows"]] == ["demo volunteer"]
    assert "Wikipedia" in site.rows("select text_credit from collaborations_collaboration")[0][0]


def test_a_peer_whose_averaging_leaks_starts_again_by_itself_and_goes_on(site):
    agent = site.leaking_agent("lea")
    wait_for("credit of a second session", lambda: site.has_credit_again("lea"))
    cause, reason, credited = site.sessions_of("lea")[0]
    assert cause == "restarting" and credited > 0
    assert reason.startswith("its memory grew from") and reason.endswith("it starts again")
    told = [event["text"] for event in site.get("collaborations/demo/events")]
    assert any(text == f"left: {reason}" for text in told)
    assert "Traceback" not in site.said("lea")
    agent.send_signal(signal.SIGTERM)  # the same process, and it still heeds signals
    assert agent.wait(40) == 0


def test_an_agent_whose_averaging_process_is_killed_is_back_in_the_rounds_by_itself(site):
    agent = site.agent("nora")
    wait_for("credit", lambda: [row[2] > 0 for row in site.sessions_of("nora")] == [True])
    before = psutil.Process(agent.pid).children(recursive=True)
    files = [*sockets_of(agent.pid), *shared_memory_of(agent.pid)]
    parts_of(agent.pid)["averaging"].kill()
    wait_for("credit of a second session", lambda: site.has_credit_again("nora"))
    cause, reason, _ = site.sessions_of("nora")[0]
    assert cause == "restarting"
    assert reason == (
        "its averaging process was killed (SIGKILL, as when memory runs out); it starts again"
    )
    assert not any(map(is_running, before))
    assert not [path for path in files if path.exists()]
    after = psutil.Process(agent.pid).children(recursive=True)
    assert len(after) == len(before)
    assert not [one for one in after if one.status() == psutil.STATUS_ZOMBIE]
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(40) == 0
    assert site.sessions_of("nora")[1][0] == "stopped"
    assert "Traceback" not in site.said("nora")


def test_torchrun_starts_a_group_whose_first_process_is_the_agent_and_stops_it_in_order(site):
    starter = site.torchrun_agent("tora")
    end = (
        "select s.end_cause, count(r.id) from devices_session s "
        "join devices_device d on d.id = s.device_id "
        "left join credit_receipt r on r.session_id = s.id and r.accepted "
        "where d.name = 'tora' group by s.id"
    )
    wait_for("credit", lambda: [count > 0 for _, count in site.rows(end)] == [True])
    processes = site_processes(starter.pid)
    starter.send_signal(signal.SIGINT)
    starter.wait(60)
    wait_for("end of its processes", lambda: not any(map(is_running, processes)))
    assert [cause for cause, _ in site.rows(end)] == ["stopped"]
    said = [path.read_text() for path in (site.folder / "tora" / "torchrun").rglob("std*.log")]
    assert len(said) == 4 and any("the session is closed on the site" in text for text in said)
    assert not any("Traceback" in text for text in said)


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
    processes = site_processes(victim.pid)
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
    leased, read = site.rows("select count(device_id), sum(passes) from shards_shard")[0]
    assert leased == 3  # of 64, and for five minutes the lost device's is nobody else's
    assert read > 0


def witnessed_members(site):
    found = site.rows("select members from live_roundrecord where from_coordinator order by -round")
    return found[0][0] if found else 0


def site_processes(pid):
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def test_a_device_that_is_revoked_on_the_site_is_known_to_every_peer_within_a_minute(site):
    said = site.manage("shell", "-v", "0", "-c", REVOKE)
    device = said.split("revoked:", 1)[1].split()[0]

    def peers_that_know():
        lists = site.folder.rglob("revoked.json")
        return {path.parent for path in lists if device in path.read_text()}

    wait_for("word to coordinator and volunteer", lambda: len(peers_that_know()) >= 2)
    assert site.data / "coordinators" / "demo" in peers_that_know()


def test_a_stop_while_a_checkpoint_comes_slowly_keeps_what_came(site):
    wait_for("checkpoint", lambda: site.rows("select 1 from artifacts_checkpoint"))
    folder = site.folder / "paul"
    with closing(SlowLink(site.port)) as link:
        agent = site.agent_at(link.url, "paul")
        (part,) = wait_for("a part", lambda: list(folder.rglob("checkpoints/*/*.part")))
        wait_for("more of it", lambda: part.stat().st_size > FIRST_BYTES)
        os.killpg(agent.pid, signal.SIGINT)
        assert agent.wait(40) == 0
        assert site.sessions_of("paul") == [("stopped", "It was stopped on this machine.", 0)]
        assert "Traceback" not in site.said("paul")
        size, link.is_slow = part.stat().st_size, False
        agent = site.agent_at(link.url, "paul")
        wait_for("credit", lambda: site.has_credit_again("paul"))
        assert f"Range: bytes={size}-" in link.asked[1]
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(40) == 0


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
