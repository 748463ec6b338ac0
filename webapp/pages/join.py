"""Join: name a device, get a launcher made for it, see it arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from trainer.catalogue import adapter_of
from trainer.planner.fit import NO_GPU, Verdict, judge_machine
from trainer.recipe import Recipe
from webapp.accounts.models import User
from webapp.collaborations import access
from webapp.collaborations.models import Collaboration
from webapp.collaborations.sizes import size_of
from webapp.core.checks import PUBLIC, how_to_widen, reach
from webapp.core.errors import UserError
from webapp.core.text import one_line
from webapp.core.tokens import new_token
from webapp.devices.models import CODE_LIFETIME
from webapp.devices.selectors import code_row, my_code, my_devices
from webapp.devices.services import NAME_LENGTH, make_code
from webapp.launcher.builder import PYZ, configuration, personal_pyz
from webapp.launcher.scripts import STARTERS, WINDOWS, archive, shell_command
from webapp.pages.acts import acting_user
from webapp.pages.collaboration import find

SALT = "launcher"
MOST_SHOWN = 8
SYSTEMS = {"linux": "Linux", "macos": "macOS", "windows": "Windows"}


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, slug: str = "") -> HttpResponse:
    """GET asks for a name; POST makes the code, and shows the launcher's shapes this once.

    Without a slug the site gives the device a collaboration.
    """
    collaboration = find(request, slug) if slug else None
    system = detected(request)
    suggestion = _("my %(system)s") % {"system": SYSTEMS[system]}
    context: dict[str, Any] = {
        "collaboration": collaboration,
        "refusal": access.refusal(request.user, "join", collaboration)
        if collaboration
        else access.lending_refusal(request.user),
        "system": system,
        "systems": SYSTEMS,
        "device_name": request.POST.get("device_name", suggestion),
        "windows": WINDOWS,
        "once": new_token(),
        "reach": "" if reach() == PUBLIC else reach(),
        "how_to_widen": how_to_widen(),
    }
    if collaboration:
        recipe = collaboration.recipe
        context |= {"own_texts": recipe.is_private, "size": size_of(recipe)}
        context["adapter"] = adapter_of(recipe)
        context["fits"] = list(_fits(acting_user(request), recipe))
    if request.method == "POST" and not context["refusal"]:
        try:
            context |= _launcher(request, collaboration)
        except UserError as error:
            context["error"] = str(error)
    return render(request, "join.html", context)


def _fits(user: User, recipe: Recipe) -> Iterator[tuple[str, Verdict]]:
    """(name, whether the model fits) of one's devices that tell their memory and are in use."""
    for device in my_devices(user).filter(revoked_at__isnull=True)[:MOST_SHOWN]:
        machine = device.machine
        gpu = machine.get("accelerator", NO_GPU)
        if verdict := judge_machine(recipe, machine.get("memory_bytes", 0), gpu):
            yield device.name, verdict


def _launcher(request: HttpRequest, collaboration: Collaboration | None) -> dict[str, Any]:
    user = acting_user(request)
    name = one_line(request.POST.get("device_name", ""), NAME_LENGTH)
    once = request.POST.get("once", "")
    code = make_code(user, collaboration=collaboration, device_name=name, once=once)
    row = code_row(code)
    assert row is not None, "it was made just now"
    config = configuration(collaboration, code, name)
    slug = collaboration.slug if collaboration else ""
    return {
        "command": shell_command(settings.SITE_URL, code),
        "downloads": {kind: _download_url(slug, kind) for kind in (*STARTERS, "pyz")},
        "ticket": signing.dumps(config, salt=SALT, compress=True),
        "arrival": {
            "url": reverse("pages:arrival", args=[row.pk]),
            "collaboration": slug,
            "name": name,
        },
    }


def _download_url(slug: str, kind: str) -> str:
    if slug:
        return reverse("pages:download", args=[slug, kind])
    return reverse("pages:download_any", args=[kind])


@never_cache
@login_required
@require_safe
def arrival(request: HttpRequest, code_id: int) -> HttpResponse:
    """How far one's launcher has come: JSON of its state, and the device it runs as."""
    user = acting_user(request)
    row = my_code(user, code_id)
    if row is None:
        raise Http404("This launcher was withdrawn.")
    device = row.device
    if device is None:
        state = "expired" if row.expires_at <= timezone.now() else "waiting"
        return JsonResponse({"state": state})
    if device.owner_id != user.pk:
        return JsonResponse({"state": "elsewhere"})
    state = "enrolled" if row.used_at else "again"
    return JsonResponse({"state": state, "device": str(device.pk), "name": device.name})


@never_cache
@login_required
@require_POST
def download(request: HttpRequest, kind: str, slug: str = "") -> HttpResponse:
    """The launcher as `linux` or `macos` archive or plain `pyz`, for the ticket the page gave."""
    if kind not in (*STARTERS, "pyz"):
        raise Http404(WINDOWS)
    try:
        config = signing.loads(request.POST.get("ticket", ""), salt=SALT, max_age=CODE_LIFETIME)
    except signing.BadSignature:
        raise PermissionDenied(_("This download has expired. Make a new launcher.")) from None
    name, content = (PYZ, personal_pyz(config)) if kind == "pyz" else archive(kind, config)
    answer = HttpResponse(content, content_type="application/octet-stream")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def detected(request: HttpRequest) -> str:
    """The visitor's system by what the browser says; the page's script corrects a wrong guess."""
    agent = request.headers.get("User-Agent", "")
    if "Windows" in agent:
        return "windows"
    return "macos" if "Mac OS X" in agent or "Macintosh" in agent else "linux"
