"""A real HTTP server on loopback whose answers a test decides."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class Answering:
    """Subclasses give `answer`. May be stopped and started again: it keeps its port.

    `shown` are the paths that were asked for with a token, and the token.
    """

    port = 0
    shown: dict[str, str]

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and content for one call; calls come on threads of their own."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        site = self
        self.shown = {}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if token := self.headers.get("Authorization"):
                    site.shown[self.path] = token
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, content = site.answer(self.command, self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET

            def log_message(self, *args: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
