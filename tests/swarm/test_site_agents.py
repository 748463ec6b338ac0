"""A volunteer's own computer with a real site: what an agent survives, and how it stops."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import psutil
import pytest

from tests.swarm.parts import parts_of, shared_memory_of, sockets_of, tree_of
from tests.swarm.site import is_running
from tests.swarm.slow_link import FIRST_BYTES, SlowLink
from tests.waiting import wait_for

pytestmark = pytest.mark.swarm


def test_the_demo_volunteer_trains_and_is_credited(site):
    site.wait_for_rounds(2)
    wait_for("state", lambda: site.get("collaborations/demo")["state"] == "running")
    snapshot = site.get("collaborations/demo")
    assert snapshot["last_round"]["outcome"] in ("clean", "alone")
    assert snapshot["last_round"]["loss"] > 0
    assert [row["name"] for row in site.get("leaderboard")["rows"]] == ["demo volunteer"]
    assert "Wikipedia" in site.rows("select text_credit from collaborations_collaboration")[0][0]


@pytest.mark.soak  # its parts are proven in tests/trainer/test_watchdog.py
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


@pytest.mark.soak  # its parts are proven in test_processes.py and tests/trainer/test_restarts.py
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


@pytest.mark.soak
def test_an_agent_that_alone_is_cut_off_from_the_site_stops_reading_when_its_lease_runs_out(site):
    with closing(SlowLink(site.port)) as link:
        link.is_slow = False
        agent = site.agent_at(link.url, "ines")
        wait_for("credit", lambda: [row[2] > 0 for row in site.sessions_of("ines")] == [True])
    words = "may have given the part to another device"
    wait_for("word of it", lambda: words in site.said("ines"), 500)
    site.wait_for_rounds(2)
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(40) == 0
    assert "Traceback" not in site.said("ines")


@pytest.mark.soak  # its parts are proven in tests/trainer/test_group.py
def test_torchrun_starts_a_group_whose_first_process_is_the_agent_and_stops_it_in_order(site):
    starter = site.torchrun_agent("tora")
    end = (
        "select s.end_cause, count(r.id) from devices_session s "
        "join devices_device d on d.id = s.device_id "
        "left join credit_receipt r on r.session_id = s.id and r.accepted "
        "where d.name = 'tora' group by s.id"
    )
    wait_for("credit", lambda: [count > 0 for _, count in site.rows(end)] == [True])
    processes = tree_of(starter.pid)
    starter.send_signal(signal.SIGINT)
    starter.wait(60)
    wait_for("end of its processes", lambda: not any(map(is_running, processes)))
    assert [cause for cause, _ in site.rows(end)] == ["stopped"]
    said = [path.read_text() for path in (site.folder / "tora" / "torchrun").rglob("std*.log")]
    assert len(said) == 4 and any("the session is closed on the site" in text for text in said)
    assert not any("Traceback" in text for text in said)


HIDE = """
from webapp.collaborations.models import Collaboration
Collaboration.objects.update(visibility="organisers")
"""


def test_a_stop_while_a_checkpoint_comes_slowly_keeps_what_came(site):
    wait_for("checkpoint", lambda: site.rows("select 1 from artifacts_checkpoint"))
    site.manage("shell", "-v", "0", "-c", HIDE)
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
        before, after = link.asked[:2]
        if sha256_in(before) == sha256_in(after):  # otherwise there is a newer one by now
            assert f"Range: bytes={size}-" in after
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(40) == 0


def sha256_in(head: str) -> str:
    return head.split("/artifacts/")[1].split("/")[0]
