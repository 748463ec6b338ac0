"""The site's table of contents."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path

admin.site.site_header = "Potluck data"
# Rate limits and a second factor, in the way allauth documents.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]


def ping(request: HttpRequest) -> HttpResponse:
    """Answers while the web process is alive; asks nothing of the database."""
    return HttpResponse("ok", content_type="text/plain")


urlpatterns = [
    path("", include("webapp.pages.urls")),
    path("", include("webapp.api.urls")),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
    path("ping", ping),
]
