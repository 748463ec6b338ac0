"""The real site in a folder of its own: `manage.py up` as a process, agents from launchers."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from tests.ports import free_port
from tests.swarm.swarm import ROOT
from tests.waiting import wait_for
from trainer.launcher.enrolment import enrolled

MAKE_CODE = """
from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration
from webapp.devices.services import make_code
user, _ = User.objects.get_or_create(email="{name}@example.org", defaults=dict(name="{name}"))
demo = Collaboration.objects.get(slug="demo")
print("code:", make_code(user, collaboration=demo, device_name="{name}"))
"""

REVOKE = """
from datetime import timedelta
from django.utils import timezone
from webapp.accounts.models import User
from webapp.devices.models import Device
from webapp.devices.services import revoke
owner = User.objects.create_user("lena@example.org", name="lena")
soon = timezone.now() + timedelta(hours=1)
stolen = Device.objects.create(owner=owner, name="stolen", passport_expires_at=soon)
revoke(stolen, by=owner)
print("revoked:", stolen.pk.hex)
"""


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "up.log"
        self.env = os.environ | {
            "DATA_DIR": str(self.data),
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "HTTP_PORT": str(self.port),
            "SITE_URL": self.url,
            "SWARM_FIRST_PORT": str(free_port()),
            "LOG_LEVEL": "WARNING",
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.agents: list[subprocess.Popen[bytes]] = []

    # ------------------------------------------------------------ life
    def up(self, *switches: str, **env: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "manage.py", "up", *switches]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, cwd=ROOT, env=self.env | env, stdout=log, stderr=log, process_group=0
            )

    def start(self, *switches: str) -> None:
        self.process = self.up(*switches)
        wait_for("ready line", lambda: self.readiness() or self.died())
        assert self.process.poll() is None, self.log.read_text()

    def readiness(self) -> bool:
        return f"open {self.url}" in self.log.read_text()

    def died(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def family(self) -> list[psutil.Process]:
        """Everything that runs on behalf of this site, whoever its parent is now."""
        assert self.process is not None
        return [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(True)]

    def end(self) -> None:
        for agent in self.agents:
            if agent.poll() is None:
                agent.terminate()
        for agent in self.agents:
            agent.wait(40)
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)

    def program(self, words: str) -> psutil.Process:
        """The process of `up` whose command line holds `words`; the oldest one."""
        found = wait_for(
            f"process {words}",
            lambda: [one for one in self.family()[1:] if words in " ".join(command_of(one))],
        )
        return min(found, key=lambda one: one.create_time())

    # ------------------------------------------------------------ agents
    def agent(self, name: str, *, installs: bool = False) -> subprocess.Popen[bytes]:
        """A volunteer's agent, started from the launcher that the site hands out.

        It runs in this environment, or `installs` one of its own.
        """
        return self.agent_of(self._make_code(name)[0], name, installs=installs)

    def agent_of(self, code: str, name: str, *, installs: bool = False) -> subprocess.Popen[bytes]:
        """The same with a code that is made already."""
        home = self.folder / name
        home.mkdir(exist_ok=True)
        urllib.request.urlretrieve(f"{self.url}/launcher/{code}/potluck.pyz", home / "potluck.pyz")
        return self.launch(name, installs=installs)

    def launch(self, name: str, *, installs: bool = False) -> subprocess.Popen[bytes]:
        """Starts a launcher that is there already."""
        home = self.folder / name
        env = self.env | {"POTLUCK_HOME": str(home)}
        env |= {} if installs else {"POTLUCK_ENV": sys.prefix}
        return self._start(["potluck.pyz", "--yes"], home, env)

    def leaking_agent(self, name: str) -> subprocess.Popen[bytes]:
        """A volunteer's agent whose averaging process leaks (`tests.swarm.leaking`)."""
        return self.agent_at(self.url, name, "tests.swarm.leaking")

    def agent_at(
        self, url: str, name: str, program: str = "trainer", *, slug: str = "demo", texts: str = ""
    ) -> subprocess.Popen[bytes]:
        """A volunteer's agent that knows this site by `url`; also again."""
        home = self.folder / name
        if not home.exists():
            code, _ = self._make_code(name)
            enrolled(home, url, {"code": code}, lambda: True)
        words = ["-m", program, "run", "--site", url, "--home", str(home), "--collaboration", slug]
        words += [texts] if texts else []
        return self._start(words, home, self.env | {"PYTHONPATH": str(ROOT)})

    def torchrun_agent(self, name: str) -> subprocess.Popen[bytes]:
        """A volunteer's agent of two processes that torchrun starts; it logs what they say."""
        code, home = self._make_code(name)
        enrolled(home, self.url, {"code": code}, lambda: True)
        torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
        logs = ["--redirects", "3", "--log-dir", str(home / "torchrun")]
        words = ["-m", "trainer", "run", "--site", self.url, "--home", str(home)]
        more = ["--collaboration", "demo", "--yes", "--processes", "2:parameters"]
        env = self.env | {"PYTHONPATH": str(ROOT)}
        return self._start([*torchrun, *logs, *words, *more], home, env)

    def _make_code(self, name: str) -> tuple[str, Path]:
        """A code for one device of that name, and its own folder."""
        done = self.manage("shell", "-v", "0", "-c", MAKE_CODE.format(name=name))
        home = self.folder / name
        home.mkdir(exist_ok=True)
        return done.split("code:", 1)[1].split()[0], home

    def _start(self, words: list[str], home: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (home / "out.log").open("wb") as log:
            agent = subprocess.Popen(
                [sys.executable, *words, "--plain", "--threads", "1"],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=home,
                start_new_session=True,
            )  # fmt: skip
        self.agents.append(agent)
        return agent

    def said(self, name: str) -> str:
        return (self.folder / name / "out.log").read_text()

    # ------------------------------------------------------------ what it knows
    def manage(self, *words: str) -> str:
        command = [sys.executable, "manage.py", *words]
        return subprocess.run(
            command, cwd=ROOT, env=self.env, check=True, capture_output=True, text=True
        ).stdout

    def get(self, path: str, patience_s: float = 120.0) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=patience_s) as reply:
            return json.load(reply)

    def answers(self) -> bool:
        try:
            return bool(self.get("clock", patience_s=20))
        except OSError:
            return False

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(
            f"file:{self.data / 'potluck.sqlite3'}?mode=ro", uri=True, timeout=20
        )
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def sessions_of(self, device: str) -> list[tuple[Any, ...]]:
        """Cause and reason of the end, and how many receipts were accepted; the oldest first."""
        return self.rows(
            "select s.end_cause, s.end_reason, count(r.id) from devices_session s "
            "join devices_device d on d.id = s.device_id "
            "left join credit_receipt r on r.session_id = s.id and r.accepted "
            f"where d.name = '{device}' group by s.id order by s.started_at"
        )

    def has_credit_again(self, device: str) -> bool:
        """In its second session."""
        return [row[2] > 0 for row in self.sessions_of(device)][1:2] == [True]

    def last_round(self) -> int:
        """The highest round that the coordinator saw done; -1 before the first."""
        found = self.rows("select max(round) from live_roundrecord where from_coordinator")
        return -1 if found[0][0] is None else int(found[0][0])

    def wait_for_rounds(self, number: int, timeout_s: float = 240) -> None:
        target = self.last_round() + number
        wait_for(f"round {target}", lambda: self.last_round() >= target, timeout_s)


def command_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
