"""What a site gives to launchers, from a real HTTP server, with a lock of two tiny wheels."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import threading
import zipfile

ECHO = """
import json, os, sys
print("agent:", json.dumps(sys.argv[1:]), flush=True)
import tiny
print("tiny:", tiny.__file__)
"""


def wheel(name: str, files: dict[str, str], version: str = "1.0") -> tuple[str, bytes]:
    info = f"{name}-{version}.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{path},sha256={digest.decode()},{len(text.encode())}\n"
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return f"{name}-{version}-py3-none-any.whl", out.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class LauncherSite:
    """Serves as an index too (`/simple/`). `answers` counts what was asked for."""

    def __init__(self, pip: bytes, pip_name: str) -> None:
        self.codes: dict[str, str] = {}
        self.asked: list[str] = []
        self.second_starts: list[str] = []
        self.refused_tokens: dict[str, tuple[int, dict[str, str]]] = {}
        tiny_name, tiny = wheel("tiny", {"tiny.py": "WHAT = 1\n"})
        agent_name, agent = wheel(
            "potluck_trainer", {"trainer/__init__.py": "", "trainer/__main__.py": ECHO}
        )
        builder_name, builder = wheel("setuptools", {"setuptools.py": ""})
        self.lock = (
            f"--only-binary :all:\nsetuptools==1.0 \\\n    --hash=sha256:{'0' * 64} \\\n"
            f"    --hash=sha256:{sha256(builder)}\n"
            f"tiny==1.0 \\\n    --hash=sha256:{sha256(tiny)}\n"
        )
        self.manifest = {
            "trainer": {"name": agent_name, "sha256": sha256(agent)},
            "pip": {"name": pip_name, "sha256": sha256(pip)},
            "locks": {"cpu": sha256(self.lock.encode()), "cuda": sha256(self.lock.encode())},
            "torch_cpu_index": "http://127.0.0.1:9/whl",
            "python_from": [3, 11],
            "python_below": [3, 14],
        }
        self.files = {
            f"/launcher/wheels/{agent_name}": agent,
            f"/launcher/wheels/{pip_name}": pip,
            f"/files/{tiny_name}": tiny,
            f"/files/{builder_name}": builder,
            "/simple/setuptools/": f'<a href="/files/{builder_name}">{builder_name}</a>'.encode(),
            "/simple/tiny/": f'<a href="/files/{tiny_name}">{tiny_name}</a>'.encode(),
        }

    def start(self) -> LauncherSite:
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append(self.path)
                live = {
                    "/launcher/manifest.json": json.dumps(site.manifest).encode(),
                    "/launcher/lock/cpu.txt": site.lock.encode(),
                    "/launcher/lock/cuda.txt": site.lock.encode(),
                }
                data = (site.files | live).get(self.path)
                self.answer(200 if data is not None else 404, data or b"{}")

            def do_POST(self):
                site.asked.append(self.path)
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/api/v1/device/again":
                    site.second_starts.append(body["code"])
                    token = self.headers["Authorization"].removeprefix("Bearer ")
                    status, said = site.refused_tokens.get(token, (200, {}))
                    self.answer(status, json.dumps(said).encode())
                    return
                state = site.codes.get(body["code"], "unknown")
                if state == "good":
                    site.codes[body["code"]] = "used"
                    reply = {
                        "token": body["code"][0] * 43,
                        "device": "d",
                        "name": "lab",
                        "collaboration": "demo",
                    }
                    self.answer(200, json.dumps(reply).encode())
                    return
                said = {
                    "used": "This launcher was already used: its code is good for one device.",
                    "expired": "This launcher's code expired on 1 May 2026 at 12:00 UTC.",
                    "unknown": "The site does not know this launcher's code.",
                }[state]
                problem = {"error": said, "next_step": "Download a new launcher.", "kind": state}
                self.answer(410, json.dumps(problem).encode())

            def answer(self, status, data):
                kind = "text/html" if self.path.startswith("/simple") else "application/json"
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                """Silent."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
