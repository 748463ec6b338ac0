"""What a launcher downloads: itself, the manifest, the lock and the site's own wheels."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views.decorators.http import require_safe

from webapp.api.files import send_file
from webapp.api.gates import PerMinute
from webapp.artifacts.storage import sha256_of
from webapp.core.errors import UserError
from webapp.devices.selectors import code_row
from webapp.launcher import builder, wheel

downloads = PerMinute("launcher", 120)


@require_safe
def manifest(request: HttpRequest) -> HttpResponse:
    return JsonResponse(wheel.manifest())


@require_safe
def lock(request: HttpRequest, kind: str) -> HttpResponse:
    """The hash-pinned packages of `cpu` or `cuda`."""
    try:
        text = wheel.lock_text(kind)
    except UserError as error:
        raise Http404(str(error)) from error
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@require_safe
async def wheels(request: HttpRequest, name: str) -> HttpResponseBase:
    try:
        path = wheel.wheel_path(name)
    except UserError as error:
        raise Http404(str(error)) from error
    answer = send_file(request, path, filename=name, etag=sha256_of(path))
    answer["Cache-Control"] = "no-cache"  # the same name gets other content with each version
    return answer


@require_safe
def personal_pyz(request: HttpRequest, code: str) -> HttpResponse:
    """For machines without a browser: `curl -O <site>/launcher/<code>/potluck.pyz`."""
    if wait_s := downloads.seconds_to_wait(request):
        return HttpResponse(status=429, headers={"Retry-After": str(wait_s)})
    row = code_row(code)
    if row is None:
        raise Http404("the site does not know this code")
    content = builder.personal_pyz(builder.configuration(row.collaboration, code, row.device_name))
    return HttpResponse(
        content,
        content_type="application/octet-stream",
        headers={
            "Content-Disposition": f'attachment; filename="{builder.PYZ}"',
            "Cache-Control": "no-store",  # it holds a secret
        },
    )
