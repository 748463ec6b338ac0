"""Serves files by their hash, in parts where asked, without holding them in memory.

What belongs to a collaboration's checkpoints goes to those who may see these, and to its devices.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

from asgiref.sync import sync_to_async
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.utils.http import parse_etags, quote_etag
from django.views.decorators.http import require_safe

from trainer.adapter_files import adapter_zip
from trainer.catalogue import adapter_of
from webapp.api.permits import ANYBODYS, caching_of, refusal_of
from webapp.api.problems import told
from webapp.artifacts.models import Artifact
from webapp.artifacts.selectors import checkpoint_by_sha256
from webapp.artifacts.storage import absolute_path

PIECE_BYTES = 256 * 1024
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Unsatisfiable(ValueError):
    """The part asked for lies outside of the file."""


@require_safe
async def artifact(request: HttpRequest, sha256: str, filename: str) -> HttpResponseBase:
    """`/artifacts/<sha256>/<filename>`; 404 when either is not as registered, 403 with the reason
    where it is not for everybody.
    """
    found = await Artifact.objects.filter(sha256=sha256, filename=filename).afirst()
    if found is None:
        raise Http404("no such file")
    if why := await sync_to_async(refusal_of)(request, found):
        return _refused(why)
    path, caching = absolute_path(found.path), caching_of(found)
    return send_file(request, path, filename=filename, etag=sha256, caching=caching)


def _refused(why: str) -> HttpResponse:
    return JsonResponse(told(403, why, kind="forbidden").dict(), status=403)


@require_safe
def adapter(request: HttpRequest, sha256: str) -> HttpResponseBase:
    """`/artifacts/<sha256 of a checkpoint>/adapter/potluck-adapter.zip`, a folder that PEFT loads.

    404 where its collaboration trains none, or none that PEFT knows; 403 as for the checkpoint.
    """
    found = checkpoint_by_sha256(sha256)
    kind = adapter_of(found.collaboration.recipe) if found else None
    if found is None or found.artifact is None or kind is None or not kind.in_peft:
        raise Http404("no such adapter")
    if why := refusal_of(request, found.artifact):
        return _refused(why)
    try:
        content = adapter_zip(absolute_path(found.artifact.path), found.collaboration.recipe)
    except FileNotFoundError as error:
        raise Http404("the file is gone") from error
    answer = HttpResponse(content, content_type="application/zip")
    answer["Content-Disposition"] = 'attachment; filename="potluck-adapter.zip"'
    answer["Cache-Control"] = caching_of(found.artifact)
    return answer


def send_file(
    request: HttpRequest, path: Path, *, filename: str, etag: str, caching: str = ANYBODYS
) -> HttpResponseBase:
    """200, 206, 304 or 416. `etag` names the content, so copies may be kept as `caching` says."""
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise Http404("the file is gone") from error
    quoted = quote_etag(etag)
    if quoted in parse_etags(request.headers.get("If-None-Match", "")):
        return _labelled(HttpResponse(status=304), quoted, caching)
    try:
        part = _part(request, size, quoted)
    except Unsatisfiable:
        refusal = HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
        return _labelled(refusal, quoted, caching)
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
    return _labelled(answer, quoted, caching)


def _labelled(answer: HttpResponseBase, etag: str, caching: str) -> HttpResponseBase:
    answer["ETag"] = etag
    answer["Accept-Ranges"] = "bytes"
    answer["Cache-Control"] = caching
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
