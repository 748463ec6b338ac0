"""What is checked at start, and who can reach this site."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, register

THIS_MACHINE = "this machine only"
LOCAL_NETWORK = "local network"
PUBLIC = "public"
_ORDER = (THIS_MACHINE, LOCAL_NETWORK, PUBLIC)


def reach() -> str:
    """Who can reach both the site and its swarm, judged by their addresses alone."""
    site = urlsplit(settings.SITE_URL).hostname or ""
    return min(reach_of(site), reach_of(settings.SWARM_HOST), key=_ORDER.index)


def reach_of(host: str) -> str:
    """A name without a dot, or under .local, .lan and the like, is taken for the local network."""
    if host == "localhost" or host.endswith(".localhost"):
        return THIS_MACHINE
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        local = "." not in host or host.endswith((".local", ".lan", ".home.arpa", ".internal"))
        return LOCAL_NETWORK if local else PUBLIC
    if address.is_loopback or address.is_unspecified:
        return THIS_MACHINE
    return PUBLIC if address.is_global else LOCAL_NETWORK


def how_to_widen() -> str:
    """What to set so that more people can take part; empty when the site is public."""
    return {
        THIS_MACHINE: "Set SITE_URL, HTTP_HOST and SWARM_HOST to an address others can reach.",
        LOCAL_NETWORK: "Set SITE_URL and SWARM_HOST to public addresses to invite the internet.",
        PUBLIC: "",
    }[reach()]


@register()
def check_reach(**kwargs: Any) -> list[CheckMessage]:
    site = urlsplit(settings.SITE_URL)
    if site.scheme not in ("http", "https") or not site.hostname:
        return [
            Error(
                f"SITE_URL is {settings.SITE_URL!r}: that is no address of a web site.",
                hint="Give it as https://name or http://name:port.",
                id="potluck.E001",
            )
        ]
    if reach() == THIS_MACHINE:
        return [
            Info(
                f"Reachable from {THIS_MACHINE} (SITE_URL {settings.SITE_URL}, "
                f"SWARM_HOST {settings.SWARM_HOST}).",
                hint=how_to_widen(),
                id="potluck.I001",
            )
        ]
    return []


@register(deploy=True)
def check_secure_address(**kwargs: Any) -> list[CheckMessage]:
    if settings.SITE_URL.startswith("https://"):
        return []
    return [
        Error(
            f"SITE_URL is {settings.SITE_URL}: passwords would travel in clear.",
            hint="Put a proxy with TLS in front and set SITE_URL to its https address.",
            id="potluck.E002",
        )
    ]
