"""The organiser's form: a new draft, one like another collaboration, or a change of a draft."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from webapp.artifacts.bases import offered_bases
from webapp.artifacts.fit import why_unfit
from webapp.artifacts.selectors import texts, tokenizers
from webapp.collaborations.drafts import why_frozen
from webapp.collaborations.forms import CollaborationForm
from webapp.collaborations.models import Collaboration
from webapp.collaborations.prefill import initial_of, left_out
from webapp.collaborations.selectors import version_of, visible_collaborations
from webapp.core.errors import UserError
from webapp.pages.acts import acting_user, back, organisers_only
from webapp.pages.collaboration import find


@require_http_methods(["GET", "HEAD", "POST"])
@organisers_only
def create(request: HttpRequest) -> HttpResponse:
    """`?like=<short name>`: filled in as that collaboration is, but for its name."""
    slug = request.GET.get("like", "")
    like = find(request, slug) if slug else None
    form = _form(request, initial=_copy_of(like) if like else None)
    if request.method == "POST" and (made := _saved(request, form)):
        return back("manage", made.slug)
    return _page(request, form, like=like)


@require_http_methods(["GET", "HEAD", "POST"])
@organisers_only
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Saves what was typed, or shows it again with the reason why not."""
    draft = visible_collaborations(request.user).filter(slug=slug).first()
    frozen = why_frozen(draft)
    if request.method != "POST":
        if draft is None:
            raise Http404(frozen)
        if frozen:
            messages.error(request, frozen)
            return back("manage", slug)
    form = _form(request, initial=initial_of(draft) if draft else None, draft=draft)
    seen = request.POST.get("version", "")
    if request.method == "POST":
        if frozen:
            form.full_clean()
            form.add_error(None, frozen)
        elif saved := _saved(request, form, seen):
            messages.success(request, _("The draft was saved."))
            return back("manage", saved.slug)
    if draft and (request.method != "POST" or form.has_error(NON_FIELD_ERRORS, "conflict")):
        seen = version_of(draft)
    return _page(request, form, draft=draft, is_editing=True, frozen=frozen, version=seen)


def _form(request: HttpRequest, **more: Any) -> CollaborationForm:
    data = request.POST if request.method == "POST" else None
    return CollaborationForm(
        data, tokenizers=tokenizers(), texts=texts(), bases=offered_bases(), **more
    )


def _copy_of(like: Collaboration) -> dict[str, Any]:
    title = _("Copy of %(title)s") % {"title": like.title}
    return initial_of(like) | {"title": title[:80], "slug": ""}


def _saved(request: HttpRequest, form: CollaborationForm, seen: str = "") -> Collaboration | None:
    """None: not saved, and the form says why."""
    if not form.is_valid():
        return None
    assert form.recipe is not None, "a valid form has made one"
    if why := why_unfit(form.recipe):
        form.add_error("tokenizer", why)
        return None
    try:
        return form.save(by=acting_user(request), seen=seen)
    except UserError as error:
        if error.kind == "forbidden":
            raise PermissionDenied(str(error)) from error
        form.add_error(None, ValidationError(str(error), code=error.kind))
        if error.kind == "conflict":
            advice = _(
                "Nothing was saved. What you typed is still here; it differs from theirs in: "
                "%(fields)s. Save again to replace theirs."
            )
            form.add_error(None, advice % {"fields": ", ".join(form.differences())})
        return None


def _page(
    request: HttpRequest,
    form: CollaborationForm,
    *,
    like: Collaboration | None = None,
    draft: Collaboration | None = None,
    **more: Any,
) -> HttpResponse:
    shown = like or draft
    missing = (
        left_out(shown.recipe, {*form.artifacts, *form.bases})
        if shown and not form.is_bound
        else []
    )
    context = {"form": form, "sections": form.sections(), "like": like, "draft": draft}
    return render(request, "console_draft.html", context | more | {"left_out": missing})
