"""Where the bytes of a text are: a file, or a URL of which nothing is stored."""

from __future__ import annotations

import io
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from trainer.sources.base import SourceUnavailable

TIMEOUT_S = 20.0
TRIES = 4
BUFFER_BYTES = 64 * 1024


class Place(Protocol):
    where: str

    def open(self, at: int = 0) -> BinaryIO:
        """From byte `at` on. Raises SourceUnavailable, as reading it does."""


class Disk:
    """A file of this device."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)

    def open(self, at: int = 0) -> BinaryIO:
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise SourceUnavailable(f"{self.path}: {error.strerror or error}") from error
        file.seek(at)
        return file


class Web:
    """A URL, http or https."""

    def __init__(self, url: str, pause_s: float = 1.0, token: str = "") -> None:
        """`pause_s` after the first failure, twice as long after each one more.

        `token` is for the server of the URL, and not for others that it refers to.
        """
        self.where, self.pause_s, self._token = url, pause_s, token

    def open(self, at: int = 0) -> BinaryIO:
        remote = Remote(self)
        remote.seek(at)
        return io.BufferedReader(remote, BUFFER_BYTES)

    def size(self) -> int | None:
        """In bytes, where the server sends any part; None where it does not."""
        try:
            with self.asked(method="HEAD") as reply:
                size = int(reply.headers.get("Content-Length") or 0)
                ranged = reply.headers.get("Accept-Ranges") == "bytes"
        except (OSError, HTTPException, ValueError):
            return None
        return size if ranged and size > 0 else None

    def asked(self, at: int = 0, method: str = "GET") -> Any:
        """The server's reply, from byte `at` on if it can. Raises OSError, HTTPException."""
        headers = {"Range": f"bytes={at}-"} if at else {}
        request = urllib.request.Request(self.where, headers=headers, method=method)  # noqa: S310
        if self._token:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        return urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310 - http(s)


class Remote(io.RawIOBase):
    """Read as it comes; a lost connection is taken up again where it broke off.

    A jump is a new request. A server without ranges sends what lies before it, too.
    """

    def __init__(self, web: Web) -> None:
        self._web = web
        self._at = 0
        self._reply: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """From the end only where the server says how much there is: raises SourceUnavailable."""
        start = 0 if whence == io.SEEK_SET else self._at
        if whence == io.SEEK_END:
            size = self._web.size()
            if size is None:
                raise SourceUnavailable(
                    f"{self._web.where}: this kind of file is read from its end, and the server "
                    "gives no parts of it (Range). Put it on one that does, or use JSONL"
                )
            start = size
        if start + offset != self._at:
            self._hang_up()
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Raises SourceUnavailable after `TRIES` failures in a row."""
        for failures in range(TRIES):
            try:
                return self._read(buffer)
            except (OSError, HTTPException) as error:
                self._hang_up()
                if failures + 1 == TRIES:
                    raise SourceUnavailable(f"{self._web.where}: {error}") from error
                time.sleep(self._web.pause_s * 2**failures)
        raise AssertionError("unreachable: the last try returns or raises")

    def _read(self, buffer: Any) -> int:
        if self._reply is None:
            try:
                self._reply = self._web.asked(self._at)
            except urllib.error.HTTPError as error:
                if error.code == 416:  # the position is the end
                    return 0
                raise
            if self._at and self._reply.status != 206:
                _skip(self._reply, self._at)
        count = self._reply.readinto(buffer)
        if not count and self._reply.length:
            raise ConnectionError("the connection broke off")
        self._at += count
        return int(count)

    def close(self) -> None:
        self._hang_up()
        super().close()

    def _hang_up(self) -> None:
        if self._reply is not None:
            self._reply.close()
        self._reply = None


def _skip(reply: Any, count: int) -> None:
    while count > 0:
        piece = reply.read(min(count, BUFFER_BYTES))
        if not piece:
            raise ConnectionError("the connection broke off")
        count -= len(piece)
