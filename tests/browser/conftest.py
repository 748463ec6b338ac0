"""A browser, and the real site in a thread of this process: same code, same server as in use."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import uvicorn
from playwright.sync_api import expect

from tests.browser.agent import Agent
from tests.factories import make_device, make_user

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
START_WITHIN_S = 20
expect.set_options(timeout=15_000)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def device():
    """Playwright's own fixture, which tests/conftest.py uses the name of: emulate no telephone."""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return browser_type_launch_args | {"executable_path": CHROMIUM, "args": ARGUMENTS}


@pytest.fixture
def context(context):
    context.set_default_timeout(15_000)
    return context


class Site:
    """uvicorn on a socket that is bound before the thread starts, so the address is known."""

    def __init__(self) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        from webapp.asgi import application

        config = uvicorn.Config(
            application,
            log_level="warning",
            lifespan="off",
            timeout_graceful_shutdown=1,
            loop="asyncio",
            ws_per_message_deflate=False,
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(
            target=lambda: self.server.run(sockets=[self.socket]), daemon=True
        )
        self.thread.start()
        deadline = time.monotonic() + START_WITHIN_S
        while not self.server.started:
            assert self.thread.is_alive() and time.monotonic() < deadline
            time.sleep(0.02)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(15)
        assert not self.thread.is_alive()

    def restart_on_same_port(self) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", self.port))
        self.start()


@pytest.fixture
def site(transactional_db, settings) -> Iterator[Site]:
    site = Site()
    settings.SITE_URL = site.url
    settings.CSRF_TRUSTED_ORIGINS = [site.url]
    site.start()
    yield site
    site.stop()


@pytest.fixture
def join(site) -> Iterator[Callable[..., Agent]]:
    """Connects an agent of a new person (or of `owner`, or with `token`) by the real websocket."""
    agents = []

    def start(name: str, slug="demo", *, owner=None, device="lab-pc", token="") -> Agent:
        token = token or make_device(owner or make_user(name), device)[1]
        agent = Agent(site.url, token, slug)
        agents.append(agent)
        return agent

    yield start
    for agent in agents:
        agent.close()


@pytest.fixture
def log_in(site, context, client):
    """Gives the browser a session cookie of `user`, made by the server as after a log-in."""

    def act(user, into=None):
        client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
        cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site.url}
        (into or context).add_cookies([cookie])

    return act
