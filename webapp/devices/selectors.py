"""Reads about devices and sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.core.paginator import Page, Paginator
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from trainer.wire import LeaveCause, Role
from webapp.accounts.models import User
from webapp.core.tokens import hashed
from webapp.devices.models import DeletedDevice, Device, EnrolmentCode, Session

PASSPORT_GRACE = timedelta(minutes=1)  # clocks of peers may be late
PAGE_SIZE = 25
SOUND = timedelta(minutes=2)  # a coordinator that is up for so long has got over what ailed it
NO_SUCH_DEVICE = (
    "The site knows no such device any more: it, or the account it belonged to, was deleted."
)
START_ANEW = (
    "To lend this computer again, sign in there, press Join and start the new launcher on it."
)


def device_by_token(token: str) -> Device | None:
    """The device, revoked or not (the caller says why it is refused); None: no such token."""
    return Device.objects.select_related("owner").filter(token_hash=hashed(token)).first()


def code_row(code: str) -> EnrolmentCode | None:
    """The row of a one-time code, used or not; None: no such code."""
    rows = EnrolmentCode.objects.select_related("collaboration")
    return rows.filter(code_hash=hashed(code)).first()


def unused_codes(user: User) -> QuerySet[EnrolmentCode]:
    """Launchers that may still make a device; newest first."""
    unused = EnrolmentCode.objects.filter(
        owner=user, used_at__isnull=True, expires_at__gt=timezone.now()
    )
    return unused.select_related("collaboration").order_by("-created_at", "-pk")


def my_code(user: User, code_id: int) -> EnrolmentCode | None:
    """One of one's own, used or not; None: withdrawn, or somebody else's."""
    return EnrolmentCode.objects.select_related("device").filter(owner=user, pk=code_id).first()


def may_manage(user: Any, device: Device) -> bool:
    """The one rule about devices: their owner and organisers may read and revoke them."""
    return user.is_authenticated and (device.owner_id == user.pk or user.is_organiser)


def device_for(user: Any, device_id: UUID | str) -> Device:
    """Raises ObjectDoesNotExist also for somebody else's device, so that nobody can probe."""
    device = Device.objects.select_related("owner").get(pk=device_id)
    if not may_manage(user, device):
        raise ObjectDoesNotExist(f"no device {device_id} of this user")
    return device


def outlawed(*, now: datetime, most: int) -> list[str]:
    """Hex ids, sorted, of devices that hold a passport and may not take part any more.

    Those whose passports live longest, where there are more than `most`.
    """
    since = now - PASSPORT_GRACE
    shut_out = Q(revoked_at__isnull=False) | ~Q(owner__ban_reason="")
    rows = [
        *Device.objects.filter(shut_out, passport_expires_at__gt=since)
        .order_by("-passport_expires_at")
        .values_list("passport_expires_at", "pk")[:most],
        *DeletedDevice.objects.filter(passport_expires_at__gt=since)
        .order_by("-passport_expires_at")
        .values_list("passport_expires_at", "pk")[:most],
    ]
    return sorted(pk.hex for _, pk in sorted(rows, reverse=True)[:most])


def my_devices(user: User) -> QuerySet[Device]:
    """With `num_open_sessions`: how many collaborations the device is in right now; `is_placed`:
    whether one of them is where the site put it."""
    is_open = Q(sessions__ended_at__isnull=True)
    as_placed = Session.objects.filter(
        device=OuterRef("pk"), collaboration=OuterRef("placed_in"), ended_at__isnull=True
    )
    return (
        user.devices.select_related("placed_in")
        .annotate(num_open_sessions=Count("sessions", filter=is_open), is_placed=Exists(as_placed))
        .order_by("name", "created_at")
    )


def devices_in(collaboration: Any) -> QuerySet[Device]:
    """All that ever had a session there, the last seen first; the site's own left out."""
    there = Session.objects.filter(collaboration=collaboration).exclude(role=Role.COORDINATOR)
    return (
        Device.objects.filter(pk__in=there.values("device"))
        .select_related("owner")
        .order_by("-last_seen_at", "pk")
    )


def coordinator_failure(collaboration: Any, *, now: datetime) -> str:
    """What its coordinator last failed of, while it fails again and again; "" when all is well."""
    sessions = Session.objects.filter(collaboration=collaboration, role=Role.COORDINATOR)
    over = sessions.filter(ended_at__isnull=False).order_by("-ended_at").first()
    if over is None or over.end_cause != LeaveCause.FAILED:
        return ""
    is_sound = sessions.filter(ended_at__isnull=True, started_at__lt=now - SOUND).exists()
    return "" if is_sound else over.end_reason


def my_sessions(user: User, page: int | str = 1) -> Page[Session]:
    """Newest first, each with the `samples`, `tokens` (None: nothing yet) and `rounds` credited."""
    credited = Q(receipts__accepted=True)
    sessions: QuerySet[Session] = (
        Session.objects.filter(device__owner=user)
        .select_related("device", "collaboration")
        .annotate(
            samples=Sum("receipts__samples", filter=credited),
            tokens=Sum("receipts__tokens", filter=credited),
            rounds=Count("receipts", filter=credited),
        )
        .order_by("-started_at", "pk")
    )
    return Paginator(sessions, PAGE_SIZE).get_page(page)


def at_work(collaborations: Iterable[Any], *, since: datetime, besides: Device) -> Counter[Any]:
    """How many devices train in each (by its primary key), or were placed there after `since`.

    The site's own devices do not count, nor does `besides`.
    """
    open_sessions = Session.objects.filter(collaboration__in=collaborations, ended_at__isnull=True)
    peers = open_sessions.exclude(role__in=(Role.COORDINATOR, Role.EVALUATOR))
    on_their_way = Device.objects.filter(placed_in__in=collaborations, placed_at__gt=since)
    places = {
        *peers.values_list("device", "collaboration"),
        *on_their_way.values_list("pk", "placed_in"),
    }
    return Counter(where for device, where in places if device != besides.pk)
