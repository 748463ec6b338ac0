"""HTTP with the site: JSON calls and files, each failure told apart and in words."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

TIMEOUT_S = 20.0
BLOCK_BYTES = 256 * 1024
MAX_REPLY_BYTES = 4 * 1024 * 1024


class Unreachable(Exception):
    """The site gave no usable answer: it is worth trying again."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Refusal(Exception):
    """The site answered and said no; trying the same again does not help."""

    def __init__(self, status: int, message: str, next_step: str = "", kind: str = "") -> None:
        super().__init__(f"{message} {next_step}".strip())
        self.status = status
        self.message = message
        self.next_step = next_step
        self.kind = kind


class Damaged(Exception):
    """A file whose content is not what its hash says."""


def _trust() -> ssl.SSLContext:
    """The system's certificates, or certifi's where Python was built without any (macOS)."""
    context = ssl.create_default_context()
    if not context.get_ca_certs() and not os.environ.get("SSL_CERT_FILE"):
        try:
            import certifi
        except ImportError:
            return context
        context.load_verify_locations(certifi.where())
    return context


def _refusal(error: urllib.error.HTTPError) -> Exception:
    """5xx, 429 and `wait` come back later; the rest is a refusal with the site's own words."""
    try:
        said = json.loads(error.read(MAX_REPLY_BYTES))
    except (ValueError, OSError, http.client.HTTPException):
        said = {}
    if not isinstance(said, dict):
        said = {}
    spoken = said.get("error") or said.get("reason") or said.get("detail")
    message = spoken if isinstance(spoken, str) else f"The site answered {error.code}."
    kind = str(said.get("kind") or "")
    if error.code >= 500 or error.code in (408, 429) or kind == "wait":
        after = error.headers.get("Retry-After", "")
        return Unreachable(message, float(after) if after.isdigit() else None)
    return Refusal(error.code, message, str(said.get("next_step") or ""), kind)


def open_url(
    url: str,
    *,
    token: str = "",
    body: Any = None,
    start: int = 0,
    timeout_s: float = TIMEOUT_S,
) -> http.client.HTTPResponse:
    """Raises Unreachable or Refusal. The token is sent as bearer and never shown."""
    headers = {"User-Agent": "potluck-trainer", "Accept-Encoding": "identity"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if start:
        headers["Range"] = f"bytes={start}-"
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    try:
        request = urllib.request.Request(url, data=data, headers=headers)  # noqa: S310
        return urllib.request.urlopen(request, timeout=timeout_s, context=_trust())  # noqa: S310
    except urllib.error.HTTPError as error:
        raise _refusal(error) from error
    except urllib.error.URLError as error:
        raise Unreachable(f"{url} cannot be reached: {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{url} cannot be reached: {error}") from error


def call(url: str, *, token: str = "", body: Any = None, timeout_s: float = TIMEOUT_S) -> bytes:
    """The reply of one GET, or POST when there is a body. Raises Unreachable or Refusal."""
    try:
        with open_url(url, token=token, body=body, timeout_s=timeout_s) as reply:
            return reply.read(MAX_REPLY_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{url} broke off: {error}") from error


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def download(
    url: str,
    path: Path,
    sha256: str,
    *,
    token: str = "",
    progress: Callable[[int, int], None] = lambda done, total: None,
    timeout_s: float = TIMEOUT_S,
) -> Path:
    """Fetches `url` into `path`, going on where an earlier try stopped; checked before it counts.

    `progress(done, total)` in bytes; total 0: not known. Raises Unreachable (what came is kept),
    Refusal, Damaged (what came is deleted) or OSError (disk).
    """
    part = path.with_name(path.name + ".part")
    start = part.stat().st_size if part.exists() else 0
    try:
        reply = open_url(url, token=token, start=start, timeout_s=timeout_s)
    except Refusal as error:
        if error.status != 416:  # all of it is here already
            raise
    else:
        with reply:
            resumed = reply.status == 206
            start = start if resumed else 0
            total = start + int(reply.headers.get("Content-Length") or 0)
            with part.open("ab" if resumed else "wb") as file:
                _copy(reply, file, url, start, total, progress)
                file.flush()
                os.fsync(file.fileno())
    if sha256_of(part) != sha256:
        part.unlink()
        raise Damaged(f"{path.name} arrived damaged: its SHA-256 is not the one announced.")
    part.replace(path)
    return path


def _copy(
    reply: http.client.HTTPResponse,
    file: Any,
    url: str,
    done: int,
    total: int,
    progress: Callable[[int, int], None],
) -> None:
    while True:
        try:
            block = reply.read1(BLOCK_BYTES)  # what is there: a slow link is not waited for
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{url} broke off after {done:,} bytes: {error}") from error
        if not block:
            break
        file.write(block)
        done += len(block)
        progress(done, total)
    if done < total:
        raise Unreachable(f"{url} broke off after {done:,} of {total:,} bytes.")
