"""Codes, devices and their sessions: the writes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from trainer.wire import LeaveCause, Machine, Role
from webapp.accounts.models import User
from webapp.accounts.selectors import is_system
from webapp.audit.services import record
from webapp.core.errors import UserError
from webapp.core.push import push_control
from webapp.core.text import one_line
from webapp.core.tokens import derived_token, hashed, new_token
from webapp.devices.models import DeletedDevice, Device, EnrolmentCode, Session
from webapp.devices.selectors import may_manage, unused_codes

if TYPE_CHECKING:  # collaborations are a layer above
    from webapp.collaborations.models import Collaboration

LEASE = timedelta(seconds=60)
CODES_KEPT = timedelta(days=7)  # so that a late start is told "expired", not "unknown"
MAX_UNUSED_CODES = 50
NAME_LENGTH = 60


@transaction.atomic
def make_code(
    user: User, *, collaboration: Collaboration | None, device_name: str, once: str = ""
) -> str:
    """The text of a one-time code, good for 24 h. It is kept only as a hash.

    Without a collaboration, the site gives the device one.

    The same form sent again (a reload) has the same `once`, and gives the same code.
    """
    if user.is_banned:
        raise UserError(f"You are banned: {user.ban_reason}", kind="forbidden")
    name = one_line(device_name, NAME_LENGTH)
    if not name:
        raise UserError("The device has no name.", "Type one, such as “lab PC”.")
    where = collaboration.pk if collaboration else 0
    code = derived_token("code", user.pk, where, name, once) if once else new_token()
    row, is_new = EnrolmentCode.objects.get_or_create(
        code_hash=hashed(code),
        defaults={"owner": user, "collaboration": collaboration, "device_name": name},
    )
    if not is_new:
        return code
    if unused_codes(user).count() > MAX_UNUSED_CODES:
        raise UserError(
            f"You have {MAX_UNUSED_CODES} launchers that were never started.",
            "Start one of them, or withdraw some on My devices.",
        )
    record(actor=user, action="code.made", subject=row)
    return code


@transaction.atomic
def withdraw_code(row: EnrolmentCode, *, by: User) -> None:
    """Makes a launcher that was never started worthless. Raises UserError."""
    if row.owner_id != by.pk:
        raise UserError("This is not your launcher.", kind="forbidden")
    locked = EnrolmentCode.objects.select_for_update(of=("self",)).filter(pk=row.pk).first()
    if locked is None:
        return
    if locked.used_at is not None:
        raise UserError(
            f"The launcher for {locked.device_name} was started meanwhile.",
            "Revoke the device instead.",
        )
    record(actor=by, action="code.withdrawn", subject=locked)
    locked.delete()


def note_second_start(device: Device, *, code: str) -> None:
    """A launcher with this code was started where `device` is enrolled: its Join page says so."""
    unused = EnrolmentCode.objects.filter(code_hash=hashed(code), used_at__isnull=True)
    unused.update(device=device)


@transaction.atomic
def enrol(*, code: str, machine: Machine) -> tuple[Device, str]:
    """Exchanges a code for a device and its token, once.

    Raises UserError with kind `unknown`, `used`, `expired` or `banned` (its owner).
    """
    row = _usable_code(code)
    token = new_token()
    device = Device.objects.create(
        owner=row.owner,
        name=row.device_name,
        token_hash=hashed(token),
        machine=machine.model_dump(mode="json"),
    )
    row.used_at = timezone.now()
    row.device = device
    row.save(update_fields=["used_at", "device"])
    record(actor=row.owner, action="device.enrolled", subject=device)
    return device, token


def _usable_code(code: str) -> EnrolmentCode:
    again = "Download a new launcher on the site's Join page."
    rows = EnrolmentCode.objects.select_for_update(of=("self",)).select_related("owner")
    row = rows.filter(code_hash=hashed(code)).first()
    if row is None:
        raise UserError(
            "The site does not know this launcher's code: it was withdrawn, or the account that "
            "made it was deleted.",
            again,
            kind="unknown",
        )
    if row.used_at is not None:
        raise UserError(
            "This launcher was already used: its code is good for one device.", again, kind="used"
        )
    if row.expires_at <= timezone.now():
        raise UserError(
            f"This launcher's code expired on {row.expires_at:%d %B %Y at %H:%M} UTC.",
            again,
            kind="expired",
        )
    if row.owner.is_banned:
        raise UserError(f"This account is banned: {row.owner.ban_reason}", kind="banned")
    return row


@transaction.atomic
def open_session(
    device: Device, *, collaboration: Collaboration, session_id: UUID | str, role: Role | str
) -> Session:
    """The session `session_id`, open; another open one of this device is closed as replaced.

    One that was given up as lost opens again. One that ended otherwise is returned as it is
    (`ended_at` set): its late reports may still be stored, but the device is not online by it.
    """
    if (role == Role.COORDINATOR) != is_system(device.owner):
        raise UserError("Only the site's own device may coordinate.", kind="forbidden")
    Device.objects.select_for_update().get(pk=device.pk)  # two starts of one device take turns
    session = Session.objects.filter(pk=session_id).first()
    if session and (session.device_id, session.collaboration_id) != (device.pk, collaboration.pk):
        raise UserError("This session belongs to another device.", kind="forbidden")
    if session and session.ended_at and session.end_cause != LeaveCause.LOST:
        return session
    for stale in Session.objects.filter(
        device=device, collaboration=collaboration, ended_at__isnull=True
    ).exclude(pk=session_id):
        close_session(stale, cause=LeaveCause.REPLACED, reason="the device started again")
    now = timezone.now()
    fields = {"role": str(role), "last_seen_at": now}
    opened = {"ended_at": None, "end_cause": "", "end_reason": ""}
    session, _ = Session.objects.update_or_create(
        pk=session_id,
        defaults=fields | opened,
        create_defaults=fields | {"device": device, "collaboration": collaboration},
    )
    Device.objects.filter(pk=device.pk).update(last_seen_at=now)
    return session


@transaction.atomic
def close_session(session: Session, *, cause: LeaveCause | str, reason: str = "") -> bool:
    """Ends an open session; False when it has ended already. A lost one ended when last seen."""
    now = timezone.now()
    ended_at = F("last_seen_at") if cause == LeaveCause.LOST else now
    changed = Session.objects.filter(pk=session.pk, ended_at__isnull=True).update(
        ended_at=ended_at, end_cause=str(cause), end_reason=one_line(reason, 300)
    )
    session.refresh_from_db()
    return bool(changed)


@transaction.atomic
def touch_sessions(ids: Iterable[UUID | str], at: datetime) -> None:
    """These sessions, still open, gave a sign of life at `at` (server time)."""
    alive = Session.objects.filter(pk__in=list(ids), ended_at__isnull=True)
    Device.objects.filter(sessions__in=alive).update(last_seen_at=at)
    alive.update(last_seen_at=at)


def close_dead_sessions(*, now: datetime) -> list[Session]:
    """Closes as lost every session whose lease ran out; returns those closed by this call."""
    dead = Session.objects.filter(ended_at__isnull=True, last_seen_at__lt=now - LEASE)
    reason = f"no sign of life for {LEASE.total_seconds():.0f} s"
    return [
        session
        for session in dead.select_related("device", "collaboration")
        if close_session(session, cause=LeaveCause.LOST, reason=reason)
    ]


@transaction.atomic
def revoke(device: Device, *, by: User, reason: str = "") -> None:
    """Makes the token worthless for good; the agent is told at once."""
    if not may_manage(by, device):
        raise UserError("This is not your device.", kind="forbidden")
    if device.is_revoked:
        return
    reason = one_line(reason, 300)
    if not reason and by.pk != device.owner_id:
        raise UserError("A revocation needs a reason.", "Write what the owner will read.")
    device.revoked_at = timezone.now()
    device.revoked_reason = reason
    device.save(update_fields=["revoked_at", "revoked_reason"])
    detail = {"reason": device.revoked_reason}
    record(actor=by, action="device.revoked", subject=device, detail=detail)
    push_control(device_id=device.pk)


def note_passport(device: Device, *, expires_at: datetime) -> bool:
    """Remembers until when the device may show a passport; False: the device was deleted."""
    return bool(Device.objects.filter(pk=device.pk).update(passport_expires_at=expires_at))


def forget_deleted_devices(*, now: datetime) -> int:
    """Those whose passports ran out an hour ago or more; returns how many."""
    gone = DeletedDevice.objects.filter(passport_expires_at__lt=now - timedelta(hours=1))
    return gone.delete()[0]


def delete_expired_codes(*, now: datetime) -> int:
    """Forgets codes a week after they ran out; returns how many."""
    return EnrolmentCode.objects.filter(expires_at__lt=now - CODES_KEPT).delete()[0]
