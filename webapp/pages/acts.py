"""How a page carries out an act: a form was posted, a service does it, a message says so."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.collaborations import access
from webapp.core.errors import UserError

View = Callable[..., HttpResponse]


def acting_user(request: HttpRequest) -> User:
    """Who acts, on pages behind `login_required` or `organisers_only`."""
    assert isinstance(request.user, User), "this page must ask visitors to log in"
    return request.user


def attempt(request: HttpRequest, act: Callable[[], object], done: str) -> bool:
    """Runs `act`; says `done`, or in words why not. True when it was carried out."""
    try:
        act()
    except UserError as error:
        if error.kind == "forbidden":
            raise PermissionDenied(str(error)) from error
        messages.error(request, str(error))
        return False
    messages.success(request, done)
    return True


def is_for_good(request: HttpRequest) -> bool:
    """Whether a tick confirms that something is deleted; if not, a message asks for it."""
    if request.POST.get("confirmation") == "on":
        return True
    messages.error(request, _("Nothing was deleted: tick “for good” to confirm."))
    return False


def organisers_only(view: View) -> View:
    """Visitors log in first; volunteers are refused (403)."""

    @login_required
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if why := access.refusal(request.user, "create"):
            raise PermissionDenied(why)
        return view(request, *args, **kwargs)

    return guarded


def back(name: str, *args: object) -> HttpResponse:
    return redirect(f"pages:{name}", *args)
