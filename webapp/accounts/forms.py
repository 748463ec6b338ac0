"""Sign-up asks for a public name beside e-mail and password."""

from __future__ import annotations

from allauth.account.forms import SignupForm as AllauthSignupForm
from allauth.account.utils import get_next_redirect_url
from django import forms

from webapp.accounts.adapter import AFTER_LOGIN
from webapp.accounts.models import User
from webapp.accounts.services import NAME_LENGTH
from webapp.core.text import one_line


class SignupForm(AllauthSignupForm):
    name = forms.CharField(
        label="Public name",
        max_length=NAME_LENGTH,
        required=False,
        help_text="Shown on the leaderboard. Leave it empty for a neutral one.",
    )

    def clean_name(self) -> str:
        name = one_line(self.cleaned_data["name"], NAME_LENGTH)
        if name and User.objects.filter(name__iexact=name).exists():
            raise forms.ValidationError("Somebody else has this name: choose another.")
        return name

    def custom_signup(self, request, user) -> None:
        # The link in the mail knows nothing of the page one came from; this browser's session does.
        if wanted := get_next_redirect_url(request):
            request.session[AFTER_LOGIN] = wanted
        if self.cleaned_data["name"]:
            user.name = self.cleaned_data["name"]
            user.save(update_fields=["name"])
