"""Static files out of installed packages: plotly's bundle, so that nothing is vendored."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

FILES = {"vendor/plotly.min.js": ("plotly", "package_data/plotly.min.js")}


def installed(package: str, relative: str) -> Path:
    """Where the file is, without importing the package (plotly takes a second to import)."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"package {package} is not installed")
    return Path(spec.origin).parent / relative


class PackageFinder(BaseFinder):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.places = {url: installed(*place) for url, place in FILES.items()}

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        place = self.places.get(path)
        if place is None:
            return []
        return [str(place)] if find_all else str(place)

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[Any]:
        for url, place in self.places.items():
            storage = FileSystemStorage(location=str(place.parent))
            # Django reads it from every finder's storage; its stubs do not declare it.
            storage.prefix = url.rsplit("/", 1)[0]  # type: ignore[attr-defined]
            yield place.name, storage
