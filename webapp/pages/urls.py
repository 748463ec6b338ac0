"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from webapp.pages import (
    collaboration,
    collaborations,
    console,
    console_acts,
    console_draft,
    docs,
    home,
    join,
    lab,
    leaderboard,
    me,
    my_devices,
    rounds,
    tokenizers,
)

app_name = "pages"
urlpatterns = [
    path("", home.show, name="home"),
    path("c/", collaborations.show, name="collaborations"),
    path("c/<slug:slug>/", collaboration.show, name="collaboration"),
    path("c/<slug:slug>/rounds/<int:round_number>/", rounds.show, name="round"),
    path("c/<slug:slug>/join/", join.show, name="join"),
    path("c/<slug:slug>/join/<str:kind>/", join.download, name="download"),
    path("join/", join.show, name="join_any"),
    path("join/<str:kind>/", join.download, name="download_any"),
    path("me/launchers/<int:code_id>/", join.arrival, name="arrival"),
    path("me/launchers/<int:code_id>/withdraw/", my_devices.withdraw, name="withdraw"),
    path("leaderboard/", leaderboard.show, name="leaderboard"),
    path("me/", me.show, name="me"),
    path("me/settings/", me.change, name="change_me"),
    path("me/delete/", me.delete, name="delete_me"),
    path("me/devices/", my_devices.show, name="my_devices"),
    path("me/devices/<uuid:device_id>/revoke/", my_devices.revoke, name="revoke_my_device"),
    path("console/", console.show, name="console"),
    path("console/create/", console_draft.create, name="create"),
    path("console/audit/", console.audit, name="audit"),
    path("console/c/<slug:slug>/", console.collaboration, name="manage"),
    path("console/c/<slug:slug>/edit/", console_draft.edit, name="edit"),
    path("console/c/<slug:slug>/delete/", console_acts.delete, name="delete_draft"),
    path("console/c/<slug:slug>/<str:act>/", console_acts.move, name="move"),
    path("console/devices/<uuid:device_id>/revoke/", console_acts.revoke, name="revoke"),
    path("console/lab/", lab.show, name="lab"),
    path("console/lab/<int:trial_id>/", lab.trial, name="trial"),
    path("console/lab/<int:trial_id>/progress/", lab.progress, name="trial_progress"),
    path("console/lab/<int:trial_id>/experiment.json", lab.plan, name="trial_plan"),
    path("console/lab/<int:trial_id>/result.json", lab.result, name="trial_result"),
    path("console/lab/<int:trial_id>/cancel/", lab.cancel, name="cancel_trial"),
    path("console/lab/<int:trial_id>/delete/", lab.delete, name="delete_trial"),
    path("console/tokenizers/", tokenizers.show, name="tokenizers"),
    path("console/tokenizers/<int:artifact_id>/", tokenizers.tokenizer, name="tokenizer"),
    path("console/tokenizers/making/<int:making_id>/", tokenizers.making, name="making"),
    path(
        "console/tokenizers/making/<int:making_id>/progress/",
        tokenizers.progress,
        name="making_progress",
    ),
    path(
        "console/tokenizers/making/<int:making_id>/cancel/",
        tokenizers.cancel,
        name="cancel_making",
    ),
    path("console/people/", console.people, name="people"),
    path("console/people/<int:user_id>/ban/", console_acts.ban, name="ban"),
    path("console/people/<int:user_id>/lift-ban/", console_acts.lift_ban, name="lift_ban"),
    path("docs/<slug:name>/", docs.show, name="docs"),
]
