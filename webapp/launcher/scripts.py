"""Other shapes of the same start: archives that start by double-click, and one line for a shell."""

from __future__ import annotations

import io
import re
import shlex
import tarfile
import time
import zipfile
from typing import Any

from webapp.core.errors import UserError
from webapp.launcher.builder import PYZ, personal_pyz

EXECUTABLE, READABLE = 0o755, 0o644
README = """\
Potluck: lend this computer to "{collaboration}" as "{device_name}".

{how}
It shows what it will do, use and send, and asks before it installs anything.
Without a desktop:  python3 potluck.pyz --yes
The launcher holds a code that is good for one device, within 24 hours.
Site: {site}
"""
LINUX_STARTER = """\
[Desktop Entry]
Type=Application
Name=Potluck
Comment=Lend this computer
Terminal=true
Exec=sh -c 'cd "$(dirname "$1")"; python3 potluck.pyz; read -p "Enter closes. " answer' sh %k
"""
MACOS_STARTER = """\
#!/bin/sh
cd "$(dirname "$0")" || exit 1
python3 potluck.pyz
echo
printf 'Press Enter to close. '
read -r answer
"""
STARTERS = {
    "linux": (
        "Start Potluck.desktop",
        LINUX_STARTER,
        "Double-click 'Start Potluck.desktop' (allow launching when the desktop asks).",
    ),
    "macos": (
        "Start Potluck.command",
        MACOS_STARTER,
        "Control-click 'Start Potluck.command', then Open.",
    ),
}
WINDOWS = (
    "Potluck does not run on Windows itself, because its peer-to-peer library does not: "
    "install WSL2 and use the Linux command inside it."
)


def archive(system: str, config: dict[str, Any]) -> tuple[str, bytes]:
    """(file name, content) for `linux` (.tar.gz) or `macos` (.zip). Raises UserError otherwise."""
    if system not in STARTERS:
        raise UserError(f"There is no launcher for {system}.", WINDOWS)
    starter, text, how = STARTERS[system]
    files = {
        PYZ: (personal_pyz(config), EXECUTABLE),
        starter: (text.encode(), EXECUTABLE),
        "README.txt": (README.format(how=how, **config).encode(), READABLE),
    }
    pack = packed_tar if system == "linux" else packed_zip
    suffix = "tar.gz" if system == "linux" else "zip"
    return f"potluck-{file_part(config['device_name'])}.{suffix}", pack("potluck", files)


def file_part(name: str) -> str:
    """A device name as part of a file name: ASCII letters, digits and hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40] or "device"


def packed_tar(folder: str, files: dict[str, tuple[bytes, int]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode, entry.mtime = len(data), mode, int(time.time())
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def packed_zip(folder: str, files: dict[str, tuple[bytes, int]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(f"{folder}/{name}", time.localtime()[:6])
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def shell_command(site: str, code: str) -> str:
    """One line for a machine without a desktop. It holds the one-time code."""
    url = shlex.quote(f"{site}/launcher/{code}/{PYZ}")
    return f"curl -fsSL {url} -o {PYZ} && python3 {PYZ} --yes"
