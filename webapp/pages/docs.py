"""The guides of docs/, rendered for the browser."""

from __future__ import annotations

import re
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
RECIPES = "recipes"
LINK = re.compile(rf"\]\((?:\.\./|{RECIPES}/)?([\w-]+)\.md")
EXTENSIONS = ["fenced_code", "tables", "toc", "sane_lists"]


@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    pages = {page.stem: page for page in guides()}
    if name not in pages:
        raise Http404(f"There is no guide called {name}.")
    title, body = rendered(pages[name], pages[name].stat().st_mtime)
    contents = [(page.stem, label(page)) for page in guides()]
    context = {"name": name, "title": title, "body": body, "contents": contents}
    return render(request, "docs.html", context)


def guides() -> list[Path]:
    """Those for people first, then the rest by name, and a page for each recipe."""
    found = {page.stem: page for page in sorted(FOLDER.glob("*.md"))}
    first = [found.pop(name) for name in FIRST if name in found]
    return first + list(found.values()) + sorted((FOLDER / RECIPES).glob("*.md"))


def label(page: Path) -> str:
    """Recipes go by their names, which are what one types."""
    if page.parent.name == RECIPES:
        return f"Recipe {page.stem}"
    return page.stem.replace("-", " ").capitalize()


@cache
def rendered(page: Path, changed: float) -> tuple[str, SafeString]:
    """Title and HTML; `changed` makes an edited file render anew. Links to guides become pages."""
    text = page.read_text()
    title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), page.stem)
    names = {other.stem for other in guides()}
    text = LINK.sub(lambda m: f"](/docs/{m[1]}/" if m[1] in names else m[0], text)
    return title, as_html(text)


def as_html(text: str) -> SafeString:
    """Of Markdown, without scripts and forms."""
    attributes = {tag: {"id"} for tag in ("h1", "h2", "h3", "h4")} | {"a": {"href", "title"}}
    safe = nh3.clean(markdown.markdown(text, extensions=EXTENSIONS), attributes=attributes)
    for tag in ("pre", "table"):  # they scroll sideways, so the keyboard must reach them
        safe = safe.replace(f"<{tag}>", f'<{tag} tabindex="0">')
    return mark_safe(safe)  # noqa: S308 - cleaned by nh3 above
