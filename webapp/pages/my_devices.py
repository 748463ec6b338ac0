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
    devices = selectors.my_devices(acting_user(request))
    return render(request, "my_devices.html", {"devices": devices})


@require_POST
@login_required
def revoke(request: HttpRequest, device_id: UUID) -> HttpResponse:
    device = find_device(request, device_id)
    done = _("%(device)s was revoked: it is shut out for good.") % {"device": device.name}
    reason = _("Revoked by its owner")
    by = acting_user(request)
    attempt(request, lambda: services.revoke(device, by=by, reason=reason), done)
    return back("my_devices")


def find_device(request: HttpRequest, device_id: UUID) -> Device:
    """Raises Http404 also for a device of somebody else."""
    try:
        return selectors.device_for(request.user, device_id)
    except ObjectDoesNotExist:
        raise Http404("There is no such device of yours.") from None
