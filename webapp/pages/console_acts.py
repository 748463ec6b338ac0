"""What organisers do: each act is a POST to its own address; a service does and audits it."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from webapp.accounts import services as accounts
from webapp.accounts.models import User
from webapp.collaborations import drafts, services
from webapp.collaborations.selectors import version_of
from webapp.collaborations.text_addresses import fetch_problem
from webapp.devices.services import revoke as revoke_device
from webapp.pages.acts import acting_user, attempt, back, is_for_good, organisers_only
from webapp.pages.collaboration import find
from webapp.pages.my_devices import find_device

MOVES = {
    "open": services.open_,
    "pause": services.pause,
    "resume": services.resume,
    "finish": services.finish,
}


@require_POST
@organisers_only
def move(request: HttpRequest, slug: str, act: str) -> HttpResponse:
    """Opens, pauses, resumes or finishes. To finish is for good, so its short name is typed."""
    if act not in MOVES:
        raise Http404(f"A collaboration cannot be told to {act}.")
    collaboration = find(request, slug)
    if act == "finish" and request.POST.get("confirmation", "").strip() != slug:
        refusal = _("Nothing was changed: type %(slug)s to confirm.") % {"slug": slug}
        messages.error(request, refusal)
        return back("manage", slug)
    opens = act == "open"
    checks_texts = opens and request.POST.get("anyway") != "on"
    if checks_texts and (problem := fetch_problem(collaboration.recipe)):
        advice = _("It was not opened. Make the text reachable, or tick “open it anyway”.")
        messages.error(request, f"{problem} {advice}")
        return back("manage", slug)
    reason = request.POST.get("reason", "")
    done = {
        "open": _("It is open: volunteers may join."),
        "pause": _("It is paused: agents wait and say so."),
        "resume": _("It goes on."),
        "finish": _("It is finished: agents hand in what they have and stop."),
    }[act]
    by = acting_user(request)
    seen = {"seen": request.POST.get("version") or version_of(collaboration)} if opens else {}
    attempt(request, lambda: MOVES[act](collaboration, by=by, reason=reason, **seen), done)
    return back("manage", slug)


@require_POST
@organisers_only
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    collaboration = find(request, slug)
    if not is_for_good(request):
        return back("manage", slug)
    done = _("The draft %(title)s was deleted.") % {"title": collaboration.title}
    by = acting_user(request)
    if attempt(request, lambda: drafts.delete(collaboration, by=by), done):
        return back("console")
    return back("manage", slug)


@require_POST
@organisers_only
def revoke(request: HttpRequest, device_id: UUID) -> HttpResponse:
    """For good, so a tick confirms it and its owner reads the reason."""
    device = find_device(request, device_id)
    reason = request.POST.get("reason", "")
    done = _("%(device)s was revoked.") % {"device": device.name}
    by = acting_user(request)
    if request.POST.get("confirmation") == "on":
        attempt(request, lambda: revoke_device(device, by=by, reason=reason), done)
    else:
        messages.error(request, _("Nothing was changed: tick “for good” to confirm."))
    slug = request.POST.get("collaboration", "")
    return back("manage", find(request, slug).slug) if slug else back("people")


@require_POST
@organisers_only
def ban(request: HttpRequest, user_id: int) -> HttpResponse:
    user = get_object_or_404(User, pk=user_id)
    reason = request.POST.get("reason", "")
    done = _("%(name)s is banned; the reason is on their agents' screens.") % {"name": user.name}
    by = acting_user(request)
    attempt(request, lambda: accounts.ban(user, by=by, reason=reason), done)
    return back("people")


@require_POST
@organisers_only
def lift_ban(request: HttpRequest, user_id: int) -> HttpResponse:
    user = get_object_or_404(User, pk=user_id)
    done = _("%(name)s may take part again.") % {"name": user.name}
    by = acting_user(request)
    attempt(request, lambda: accounts.lift_ban(user, by=by), done)
    return back("people")
