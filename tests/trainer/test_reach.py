"""What a device makes of the site's attempt to dial it."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.waiting import wait_for
from trainer.agent.reach import seated
from trainer.agent.seat import Seat
from trainer.grant import DialBack
from trainer.recipe import Round
from trainer.wire import Role


class DiallingSite:
    """Dials for real, and then says the device has `address`."""

    def __init__(self, reach: bool, address: str = "127.0.0.1") -> None:
        self.reach, self.address = reach, address
        self.heard = b""
        self.port = 0

    def dial_back(self, port: int, word: str) -> DialBack:
        self.port = port
        if self.reach:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                self.heard = connection.recv(64)
        assert self.heard == (word.encode() if self.reach else b"")
        return DialBack(reachable=self.reach, address=self.address, reason="it is behind a wall")


@pytest.fixture
def seat(tmp_path):
    return Seat("http://localhost", "t", "demo", cache=tmp_path, folder=tmp_path)


def test_a_device_that_was_reached_listens_where_it_was_dialled(seat):
    site = DiallingSite(reach=True)
    found = seated(seat, Round(), site, print)
    assert found.role is Role.PEER
    assert found.listen_address == f"/ip4/0.0.0.0/tcp/{site.port}"
    assert found.announce_host == ""
    socket.create_server(("0.0.0.0", site.port)).close()  # it is free again for the swarm


def test_the_port_is_free_again_when_the_answer_of_the_site_took_a_while(seat):
    class SlowSite(DiallingSite):
        def dial_back(self, port, word):
            found = super().dial_back(port, word)
            (listening,) = [one for one in threading.enumerate() if one.name == "dial-back"]
            status = Path(f"/proc/self/task/{listening.native_id}/stat")
            wait_for("a thread that waits", lambda: status.read_text().split()[2] == "S")
            return found

    site = SlowSite(reach=True)
    seated(seat, Round(), site, print)
    socket.create_server(("0.0.0.0", site.port)).close()


def test_behind_a_router_that_forwards_the_port_the_outer_address_is_announced(seat):
    site = DiallingSite(True, "203.0.113.7")
    assert seated(seat, Round(), site, print).announce_host == "203.0.113.7"


def test_a_device_that_nobody_can_dial_becomes_a_sender_and_says_why(seat):
    said: list[str] = []
    assert seated(seat, Round(), DiallingSite(reach=False), said.append).role is Role.SENDER
    assert "behind a wall" in said[0] and "--port" in said[0]


def test_a_port_that_the_volunteer_names_is_used_when_it_is_free(seat):
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
    site = DiallingSite(reach=True)
    seated(replace(seat, port=free), Round(), site, print)
    assert site.port == free


def test_where_the_coordinator_alone_averages_nobody_is_dialled_and_the_volunteer_is_told(seat):
    said: list[str] = []
    site = DiallingSite(reach=True)
    found = seated(seat, Round(averaged_by="coordinator"), site, said.append)
    assert found.role is Role.SENDER and site.port == 0
    assert "the coordinator alone averages" in said[0]
