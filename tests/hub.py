"""A hub in this process: what `huggingface_hub` asks of one when a folder is pushed."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_canary_never_to_be_seen"


class Hub(ThreadingHTTPServer):
    """`repositories`: {name: {path: content}}; `fault` answers the named step with a status.

    Files that end in .safetensors go by LFS. `steps`: what was asked, in order.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.store: dict[str, bytes] = {}
        self.steps: list[str] = []
        self.fault: dict[str, int] = {}
        self.waits = threading.Event()  # set: nothing is waited for
        self.waits.set()

    @property
    def commits(self) -> int:
        return self.steps.count("commit")


@contextmanager
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.waits.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        place = self.path.partition("?")[0].strip("/").split("/")
        match place:
            case ["api", "repos", "create"]:
                self._step("create", lambda: self._create(json.loads(content)))
            case ["api", "validate-yaml"]:
                self._step("validate", lambda: {"errors": [], "warnings": []})
            case ["api", "models", owner, name, "preupload", "main"]:
                self._step("preupload", lambda: self._modes(f"{owner}/{name}", content))
            case [owner, name, "info", "lfs", "objects", "batch"]:
                self._step("batch", lambda: self._batch(json.loads(content)))
            case ["api", "models", owner, name, "commit", "main"]:
                self._step("commit", lambda: self._commit(f"{owner}/{name}", content))
            case _:
                self._answer(404, {"error": f"no {self.path}"})

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        sha256 = self.path.rsplit("/", 1)[1]
        assert hashlib.sha256(content).hexdigest() == sha256
        self.server.steps.append("upload")
        self.server.waits.wait(60)
        self.server.store[sha256] = content
        self._answer(200, {})

    def do_GET(self) -> None:
        """Of a repository: its newest commit."""
        name = self.path.partition("?")[0].removeprefix("/api/models/").split("/revision/")[0]
        if name not in self.server.repositories:
            self._answer(404, {"error": "Repository not found"}, code="RepoNotFound")
        else:
            self._answer(200, {"id": name, "sha": "1" * 40, "siblings": []})

    def _step(self, name: str, act: Any) -> None:
        self.server.steps.append(name)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}" and name != "validate":
            self._answer(401, {"error": "Invalid username or password."})
        elif status := self.server.fault.get(name):
            # As badly as a hub can behave: it says what it was sent.
            self._answer(status, {"error": f"not for {self.headers.get('Authorization')}"})
        else:
            self._answer(200, act())

    def _create(self, given: dict[str, Any]) -> dict[str, Any]:
        name = f"{given.get('organization') or 'owner'}/{given['name']}"
        if name not in self.server.repositories:
            self.server.repositories[name] = {}
            self.server.private[name] = given.get("visibility") == "private"
        return {"url": f"{self.server.url}/{name}", "name": name, "id": name}

    def _modes(self, name: str, content: bytes) -> dict[str, Any]:
        known = self.server.repositories[name]
        return {
            "files": [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                    "oid": _oid(known[file["path"]]) if file["path"] in known else None,
                }
                for file in json.loads(content)["files"]
            ]
        }

    def _batch(self, given: dict[str, Any]) -> dict[str, Any]:
        """Nothing to do for what is in the store."""
        objects = []
        for one in given["objects"]:
            href = f"{self.server.url}/store/{one['oid']}"
            upload = {"actions": {"upload": {"href": href}}}
            known = one["oid"] in self.server.store
            objects.append({"oid": one["oid"], "size": one["size"]} | ({} if known else upload))
        return {"transfer": "basic", "objects": objects}

    def _commit(self, name: str, content: bytes) -> dict[str, Any]:
        files = self.server.repositories[name]
        for line in map(json.loads, content.decode().strip().splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.store[value["oid"]]
        url = f"{self.server.url}/{name}/commit/{'1' * 40}"
        return {"success": True, "commitOid": "1" * 40, "commitUrl": url, "hookOutput": ""}

    def _answer(self, status: int, content: dict[str, Any], code: str = "") -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _oid(content: bytes) -> str:
    """As git names a file, or LFS one of its own."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
