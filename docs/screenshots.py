"""Makes the pictures of the README anew: a site of its own, a real swarm, four pages.

`make screenshots`; takes about five minutes. The pictures are written to docs/img/.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
NUM_ROUNDS = 40
LONGEST_S = 900
PAGES = {
    "collaboration": ("/c/demo/", ""),
    "join": ("/c/demo/join/", "organiser@localhost"),
    "me": ("/me/", "demo-volunteer@localhost"),
    "console": ("/console/", "organiser@localhost"),
}


def session_cookie(email: str) -> str:
    """A logged-in session of this person, made as a log-in would."""
    code = (
        "from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY;"
        "from django.contrib.sessions.backends.db import SessionStore;"
        "from django.conf import settings; from webapp.accounts.models import User;"
        f"user = User.objects.get(email={email!r}); session = SessionStore();"
        "session[SESSION_KEY] = str(user.pk);"
        "session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0];"
        "session[HASH_SESSION_KEY] = user.get_session_auth_hash();"
        "session.create(); print(session.session_key)"
    )
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.split()[-1]


def wait_for_rounds(site: str) -> None:
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{site}/api/v1/collaborations/demo") as answer:  # noqa: S310
                if json.load(answer)["round"] >= NUM_ROUNDS:
                    return
        except OSError:
            pass  # it is starting
        time.sleep(1)
    sys.exit(f"The demo did not reach round {NUM_ROUNDS} within {LONGEST_S} s.")


def take(page: Page, site: str, name: str, path: str) -> None:
    page.goto(site + path)
    page.wait_for_timeout(4000)  # the chart draws itself and frames arrive
    page.screenshot(path=ROOT / "docs" / "img" / f"{name}.png")


def main() -> None:
    port = free_port()
    site = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="potluck-screenshots-") as folder:
        os.environ |= {
            "DATA_DIR": folder,
            "HTTP_PORT": str(port),
            "SITE_URL": site,
            "SWARM_FIRST_PORT": str(free_port()),
        }
        site_process = subprocess.Popen([sys.executable, "manage.py", "up"], cwd=ROOT)
        try:
            wait_for_rounds(site)
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
                for name, (path, email) in PAGES.items():
                    context = browser.new_context(viewport={"width": 1000, "height": 760})
                    if email:
                        cookie = {"name": "sessionid", "value": session_cookie(email), "url": site}
                        context.add_cookies([cookie])  # type: ignore[list-item]
                    take(context.new_page(), site, name, path)
                browser.close()
        finally:
            site_process.send_signal(signal.SIGINT)
            site_process.wait(timeout=60)


if __name__ == "__main__":
    main()
