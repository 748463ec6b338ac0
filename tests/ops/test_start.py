"""What `up` checks and prepares before anything runs."""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
from functools import partial
from pathlib import Path

import pytest
import redis

from tests.ports import free_port
from tests.waiting import wait_for
from webapp.ops.embedded import CannotEmbed, private_folder, valkey_command
from webapp.ops.instance import CannotStart, check_port, claim, keep_files_private, raise_file_limit


def test_one_data_folder_has_one_running_site(tmp_path):
    running = claim(tmp_path, "http://first.example:8000")
    with pytest.raises(CannotStart, match=r"already running at http://first\.example:8000"):
        claim(tmp_path, "http://second.example:8000")
    running.close()
    claim(tmp_path, "http://second.example:8000").close()


def test_a_port_in_use_is_told_with_the_setting_to_change():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=rf"port {port}.*HTTP_PORT={port + 1}"):
            check_port("127.0.0.1", port)
    check_port("127.0.0.1", free_port())


def test_the_limit_of_open_files_is_raised_and_never_lowered():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_mails_and_the_database_are_for_this_account_alone(tmp_path):
    mails = tmp_path / "mail"
    mails.mkdir()
    old = [mails / "one.log", tmp_path / "potluck.sqlite3"]
    for path in old:
        path.touch(mode=0o644)
    before = os.umask(0o022)
    try:
        keep_files_private(tmp_path)
        (mails / "new.log").write_text("x")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (*old, mails / "new.log")} == {0o600}


def test_the_bundled_valkey_listens_on_a_private_socket_only_and_keeps_its_data(tmp_path):
    place = Path("/tmp") / f"potluck-test-{tmp_path.name[-20:]}"
    place.mkdir(mode=0o755)
    path = place / "valkey.sock"
    try:
        for expected in (None, b"kept"):
            server = subprocess.Popen(valkey_command(path, tmp_path / "valkey"))
            client = redis.Redis(unix_socket_path=str(path))
            wait_for("PONG", partial(ponged, client))
            assert client.get("key") == expected
            client.set("key", "kept")
            assert client.config_get("port") == {"port": "0"}
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            client.close()
            server.terminate()
            server.wait(10)
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    finally:
        place.rmdir() if not list(place.iterdir()) else path.unlink()


def ponged(client):
    try:
        return client.ping()
    except redis.ConnectionError:
        return False


def test_a_socket_path_that_is_too_long_is_told_with_the_setting_to_change(tmp_path):
    with pytest.raises(CannotEmbed, match="RUN_DIR"):
        valkey_command(tmp_path / ("x" * 120) / "valkey.sock", tmp_path)


def test_a_link_in_the_place_of_the_private_folder_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CannotEmbed, match="RUN_DIR"):
        private_folder(tmp_path / "run")
