"""My devices: which machines speak for me, and how to shut one out."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from webapp.devices import selectors, services
from webapp.devices.models import Device
from webapp.pages.acts import acting_user, attempt, back


@require_safe
@login_required
def show(request: HttpRequest) -> HttpResponse:
    user = acting_user(request)
    shown = {"devices": selectors.my_devices(user), "launchers": selectors.unused_codes(user)}
    return render(request, "my_devices.html", shown)


@require_POST
@login_required
def revoke(request: HttpRequest, device_id: UUID) -> HttpResponse:
    device = find_device(request, device_id)
    done = _("%(device)s was revoked: it is shut out for good.") % {"device": device.name}
    reason = _("Revoked by its owner")
    by = acting_user(request)
    attempt(request, lambda: services.revoke(device, by=by, reason=reason), done)
    return back("my_devices")


@require_POST
@login_required
def withdraw(request: HttpRequest, code_id: int) -> HttpResponse:
    """Makes one of one's launchers worthless before it is started."""
    by = acting_user(request)
    row = selectors.my_code(by, code_id)
    if row is None:
        raise Http404("There is no such launcher of yours.")
    done = _("The launcher for %(device)s was withdrawn.") % {"device": row.device_name}
    attempt(request, lambda: services.withdraw_code(row, by=by), done)
    return back("my_devices")


def find_device(request: HttpRequest, device_id: UUID) -> Device:
    """Raises Http404 also for a device of somebody else."""
    try:
        return selectors.device_for(request.user, device_id)
    except ObjectDoesNotExist:
        raise Http404("There is no such device of yours.") from None
