"""Hosts in network namespaces around one router, each behind a link of its own rate. Needs root."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

CLONE_NEWNET = 0x40000000
ROUTER = "potluck-router"
PORT = 4000
LIBC = ctypes.CDLL(None, use_errno=True)


def problem() -> str:
    """Why there can be no namespaces here; "" where there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [program for program in ("ip", "tc") if not shutil.which(program)]
    return f"{' and '.join(missing)} not found (Debian: iproute2)" if missing else ""


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def address(number: int) -> str:
    return f"10.77.{number}.2"


@contextmanager
def inside(name: str) -> Iterator[None]:
    """This thread, and what it forks meanwhile, is in that namespace."""
    with Path("/proc/thread-self/ns/net").open() as home:
        enter(name)
        try:
            yield
        finally:
            _enter(home.fileno())


def enter(name: str) -> None:
    """For good."""
    with Path("/run/netns", name).open() as namespace:
        _enter(namespace.fileno())


def _enter(descriptor: int) -> None:
    if LIBC.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Net:
    """`rates` of the hosts' links in Mbit/s, up as down. Hosts in `hidden` have no link: a relay
    of their own dials out for them over it, and nobody can dial them, as behind a NAT.
    """

    def __init__(
        self, rates: Sequence[int], hidden: Collection[int] = (), relay_options: Sequence[str] = ()
    ) -> None:
        self.hidden = set(hidden)
        self._relays: list[subprocess.Popen[bytes]] = []
        self._made: list[str] = []
        self._add(ROUTER)
        for number, rate in enumerate(rates):
            self._connect(number, rate)
        dialled = [address(n) for n in range(len(rates)) if n not in self.hidden]
        for number in self.hidden:
            self._hide(number, dialled, relay_options)

    def _add(self, name: str) -> str:
        run("ip", "netns", "add", name)
        self._made.append(name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        settings = "echo cubic > tcp_congestion_control; echo 1 > ip_forward"  # Linux's usual one
        run("ip", "netns", "exec", name, "sh", "-c", f"cd /proc/sys/net/ipv4; {settings}")
        return name

    def _connect(self, number: int, rate: int) -> None:
        name, far = self._add(f"potluck-{number}"), f"potluck{number}"
        veth = ("type", "veth", "peer", "eth0", "netns", name)
        run("ip", "link", "add", far, "netns", ROUTER, *veth)
        ends = ((name, "eth0", address(number)), (ROUTER, far, f"10.77.{number}.1"))
        for namespace, end, own in ends:
            run("ip", "-n", namespace, "addr", "add", f"{own}/24", "dev", end)
            run("ip", "-n", namespace, "link", "set", end, "up")
            shape = ("tbf", "rate", f"{rate}mbit", "burst", "64kb", "latency", "200ms")
            run("tc", "-n", namespace, "qdisc", "add", "dev", end, "root", *shape)
        run("ip", "-n", name, "route", "add", "default", "via", f"10.77.{number}.1")

    def _hide(self, number: int, dialled: Sequence[str], options: Sequence[str]) -> None:
        inner = self._add(f"potluck-{number}-in")
        for other in dialled:
            run("ip", "-n", inner, "addr", "add", f"{other}/32", "dev", "lo")
        words = [sys.executable, "-m", "bench.relay", inner, f"potluck-{number}", *dialled]
        self._relays.append(subprocess.Popen([*words, *options]))

    def home(self, number: int) -> str:
        """The namespace that this host's programs run in."""
        return f"potluck-{number}-in" if number in self.hidden else f"potluck-{number}"

    def close(self) -> None:
        for relay in self._relays:
            relay.kill()
            relay.wait()
        for name in self._made:
            with suppress(subprocess.CalledProcessError):
                run("ip", "netns", "del", name)
