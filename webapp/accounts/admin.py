from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from webapp.accounts.models import User


@admin.register(User)
class UserAdmin(admin.ModelAdmin):
    """Facts and roles. Bans are made in the console, where they need a reason and are recorded."""

    list_display = ("name", "email", "is_staff", "is_listed", "ban_reason", "date_joined")
    list_filter = ("is_staff", "is_listed", "is_active")
    search_fields = ("name", "email")
    ordering = ("-date_joined",)
    fields = (
        "name",
        "email",
        "is_listed",
        "is_named",
        "is_active",
        "is_staff",
        "is_superuser",
        "ban_reason",
        "date_joined",
        "last_login",
    )
    readonly_fields = ("ban_reason", "date_joined", "last_login")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # people sign up themselves, so that their e-mail address is verified
