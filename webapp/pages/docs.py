"""The guides of docs/, rendered for the browser."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import markdown
import nh3
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

FOLDER = settings.BASE_DIR / "docs"
FIRST = ["volunteer", "organiser", "operations"]
EXTENSIONS = ["fenced_code", "tables", "toc", "sane_lists"]


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    pages = {page.stem: page for page in guides()}
    if name not in pages:
        raise Http404(f"There is no guide called {name}.")
    title, body = rendered(pages[name], pages[name].stat().st_mtime)
    contents = [(page.stem, page.stem.replace("-", " ").capitalize()) for page in guides()]
    context = {"name": name, "title": title, "body": body, "contents": contents}
    return render(request, "docs.html", context)


def guides() -> list[Path]:
    """Those for people first, then the rest by name."""
    found = {page.stem: page for page in sorted(FOLDER.glob("*.md"))}
    return [found.pop(name) for name in FIRST if name in found] + list(found.values())


@cache
def rendered(page: Path, changed: float) -> tuple[str, SafeString]:
    """Title and HTML; `changed` makes an edited file render anew. Links to guides become pages."""
    text = page.read_text()
    title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), page.stem)
    for other in guides():
        text = text.replace(f"]({other.name}", f"](/docs/{other.stem}/")
    return title, as_html(text)


def as_html(text: str) -> SafeString:
    """Of Markdown, without scripts and forms."""
    attributes = {tag: {"id"} for tag in ("h1", "h2", "h3", "h4")} | {"a": {"href", "title"}}
    safe = nh3.clean(markdown.markdown(text, extensions=EXTENSIONS), attributes=attributes)
    for tag in ("pre", "table"):  # they scroll sideways, so the keyboard must reach them
        safe = safe.replace(f"<{tag}>", f'<{tag} tabindex="0">')
    return mark_safe(safe)  # noqa: S308 - cleaned by nh3 above
