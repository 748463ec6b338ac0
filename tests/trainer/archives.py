"""Archives with a text in them, which is not what a text is packed in."""

from __future__ import annotations

import io
import tarfile
import zipfile


def archived(kind: str, content: bytes) -> bytes:
    """`kind`: "zip", or a mode of `tarfile`."""
    made = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("poems.txt", content)
    else:
        with tarfile.open(fileobj=made, mode=kind) as archive:
            member = tarfile.TarInfo("poems.txt")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()
