"""My contributions: what did my machines do, and what does the site know of me?"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts import services
from webapp.credit.selectors import credit_per_day, my_totals
from webapp.devices.selectors import my_devices, my_sessions
from webapp.pages.acts import acting_user, attempt, back

DAYS = 30


@require_safe
@login_required
def show(request: HttpRequest) -> HttpResponse:
    user = acting_user(request)
    days = credit_per_day(user, DAYS)
    return render(
        request,
        "me.html",
        {
            "devices": my_devices(user),
            "sessions": my_sessions(user, request.GET.get("page", 1)),
            "totals": my_totals(user),
            "num_days": DAYS,
            "days": [
                {"day": day.day.isoformat(), "samples": day.samples, "tokens": day.tokens}
                for day in days
            ],
        },
    )


@require_POST
@login_required
def change(request: HttpRequest) -> HttpResponse:
    user = acting_user(request)
    name = request.POST.get("name", "")
    is_listed = request.POST.get("is_listed") == "on"
    is_named = request.POST.get("is_named") == "on"

    @transaction.atomic
    def act() -> None:
        if name != user.name:
            services.rename(user, name=name)
        if is_listed != user.is_listed:
            services.set_listed(user, is_listed=is_listed)
        if is_named != user.is_named:
            services.set_named(user, is_named=is_named)

    attempt(request, act, _("Your settings were saved."))
    return back("me")


@require_POST
@login_required
def delete(request: HttpRequest) -> HttpResponse:
    """Asks for the public name, typed, so that nobody deletes an account by a slip."""
    user = acting_user(request)
    if request.POST.get("confirmation", "").strip() != user.name:
        messages.error(request, _("Nothing was deleted: type your public name to confirm."))
        return back("me")
    done = _(
        "Your account was deleted. What your machines did stays in the totals, without a name."
    )
    if not attempt(request, lambda: services.delete_account(user), done):
        return back("me")
    logout(request)  # the message stays: it belongs to this request
    return back("home")
