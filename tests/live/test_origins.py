"""B06: browsers' sockets are open to the site's own pages, agents' sockets to a token."""

from __future__ import annotations

import pytest

from tests.live.agents import ORIGIN, Agent, Viewer, cookie_of


@pytest.mark.parametrize("path", ["/ws/me/", "/ws/c/demo/"])
@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "https://evil.example",
        "http://testserver:8443",
        "https://testserver",
        "http://testserver.evil.test",
        "http://eviltestserver",
        "http://evil@testserver",
    ],
)
async def test_b06_a_browsers_socket_with_a_cookie_is_refused_from_elsewhere(
    live, browser, collaboration, path, origin
):
    assert not await Viewer(path, cookie_of(browser), origin=origin).connect()


@pytest.mark.parametrize("origin", [ORIGIN, "http://testserver:80", "http://localhost"])
async def test_b06_a_browsers_socket_is_open_to_the_sites_own_pages(
    live, browser, collaboration, origin
):
    assert await Viewer("/ws/me/", cookie_of(browser), origin=origin).connect()


async def test_b06_behind_a_proxy_the_configured_address_decides_not_the_host_header(
    live, collaboration, settings
):
    settings.SITE_URL = "https://potluck.example"
    settings.ALLOWED_HOSTS = ["potluck.example"]
    viewer = Viewer(origin="https://potluck.example")
    viewer.scope["headers"].append((b"host", b"10.0.0.7:8000"))
    assert await viewer.connect()
    posing = Viewer(origin="http://10.0.0.7:8000")
    posing.scope["headers"].append((b"host", b"10.0.0.7:8000"))
    assert not await posing.connect()


@pytest.mark.parametrize("origin", ["", "https://evil.example", "null"])
async def test_b06_an_agent_needs_a_token_and_no_origin(live, token, origin):
    headers = [(b"origin", origin.encode())] if origin else []
    await Agent(token, headers=headers).join()


async def test_b06_a_cookie_without_a_token_opens_no_device_socket(live, browser, collaboration):
    agent = Agent("", headers=[(b"cookie", cookie_of(browser).encode())])
    await agent.connect()
    assert "knows no such device any more" in (await agent.hear()).reason
