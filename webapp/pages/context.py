"""What every template may use."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

from webapp.core.phrases import PHRASES


def site(request: HttpRequest) -> dict[str, object]:
    return {
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "phrases": {name: str(phrase) for name, phrase in PHRASES.items()},
    }
