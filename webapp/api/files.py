"""Serves files by their hash, in parts where asked, without holding them in memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import parse_etags, quote_etag
from django.views.decorators.http import require_safe

from trainer.adapter_files import adapter_zip
from trainer.catalogue import adapter_of
from webapp.artifacts.models import Artifact
from webapp.artifacts.selectors import checkpoint_by_sha256
from webapp.artifacts.storage import absolute_path

PIECE_BYTES = 256 * 1024
FOREVER = "public, max-age=31536000, immutable"
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Unsatisfiable(ValueError):
    """The part asked for lies outside of the file."""


@require_safe
async def artifact(request: HttpRequest, sha256: str, filename: str) -> HttpResponseBase:
    """`/artifacts/<sha256>/<filename>`; 404 when either is not as registered."""
    found = await Artifact.objects.filter(sha256=sha256, filename=filename).afirst()
    if found is None:
        raise Http404("no such file")
    return send_file(request, absolute_path(found.path), filename=filename, etag=sha256)


@require_safe
def adapter(request: HttpRequest, sha256: str) -> HttpResponseBase:
    """`/artifacts/<sha256 of a checkpoint>/adapter/potluck-adapter.zip`, a folder that PEFT loads.

    404 where its collaboration trains none, or none that PEFT knows.
    """
    found = checkpoint_by_sha256(sha256)
    kind = adapter_of(found.collaboration.recipe) if found else None
    if found is None or kind is None or not kind.in_peft:
        raise Http404("no such adapter")
    try:
        content = adapter_zip(absolute_path(found.artifact.path), found.collaboration.recipe)
    except FileNotFoundError as error:
        raise Http404("the file is gone") from error
    answer = HttpResponse(content, content_type="application/zip")
    answer["Content-Disposition"] = 'attachment; filename="potluck-adapter.zip"'
    answer["Cache-Control"] = FOREVER
    return answer


def send_file(request: HttpRequest, path: Path, *, filename: str, etag: str) -> HttpResponseBase:
    """200, 206, 304 or 416. `etag` names the content, so copies may be kept for ever."""
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise Http404("the file is gone") from error
    quoted = quote_etag(etag)
    if quoted in parse_etags(request.headers.get("If-None-Match", "")):
        return _labelled(HttpResponse(status=304), quoted)
    try:
        part = _part(request, size, quoted)
    except Unsatisfiable:
        refusal = HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
        return _labelled(refusal, quoted)
    start, end = part or (0, size)
    answer: HttpResponseBase = HttpResponse()
    if request.method != "HEAD":
        answer = StreamingHttpResponse(_pieces(path, start, end))
    answer.status_code = 206 if part else 200
    answer["Content-Type"] = "application/octet-stream"
    answer["Content-Length"] = str(end - start)
    answer["Content-Disposition"] = f'attachment; filename="{filename}"'
    if part:
        answer["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return _labelled(answer, quoted)


def _labelled(answer: HttpResponseBase, etag: str) -> HttpResponseBase:
    answer["ETag"] = etag
    answer["Accept-Ranges"] = "bytes"
    answer["Cache-Control"] = FOREVER
    return answer


def _part(request: HttpRequest, size: int, etag: str) -> tuple[int, int] | None:
    """(start, end) of the one range asked for; None: send everything. Raises Unsatisfiable."""
    match = RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    if match is None or request.headers.get("If-Range", etag) != etag:
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if not first:  # the last so many bytes
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1 if last else size, size)
    if start >= end:
        raise Unsatisfiable(f"bytes {start} to {end} of {size}")
    return start, end


async def _pieces(path: Path, start: int, end: int) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        left = end - start
        while left > 0:
            piece = await asyncio.to_thread(file.read, min(PIECE_BYTES, left))
            if not piece:
                return  # cut short: the client sees that bytes are missing
            left -= len(piece)
            yield piece
