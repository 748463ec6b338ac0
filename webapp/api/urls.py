"""Addresses for programs: the API, files by hash, and what a launcher downloads."""

from __future__ import annotations

from django.urls import path, re_path

from webapp.api import files, launcher
from webapp.api.router import api

urlpatterns = [
    path("api/v1/", api.urls),
    re_path(
        r"^artifacts/(?P<sha256>[0-9a-f]{64})/(?P<filename>[A-Za-z0-9._-]{1,120})$",
        files.artifact,
        name="artifact",
    ),
    re_path(
        r"^artifacts/(?P<sha256>[0-9a-f]{64})/adapter/potluck-adapter\.zip$",
        files.adapter,
        name="adapter",
    ),
    path("launcher/manifest.json", launcher.manifest, name="launcher-manifest"),
    re_path(r"^launcher/lock/(?P<kind>[a-z]{1,10})\.txt$", launcher.lock, name="launcher-lock"),
    path("launcher/wheels/<str:name>", launcher.wheels, name="launcher-wheel"),
    re_path(
        r"^launcher/(?P<code>[A-Za-z0-9_-]{20,100})/potluck\.pyz$",
        launcher.personal_pyz,
        name="launcher-pyz",
    ),
]
