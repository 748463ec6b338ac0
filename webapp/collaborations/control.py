"""What the site wants of one device in one collaboration right now."""

from __future__ import annotations

from trainer.wire import Control, LeaveCause, Wish
from webapp.collaborations.models import Collaboration, State
from webapp.devices.models import Device
from webapp.devices.selectors import NO_SUCH_DEVICE, START_ANEW


def current_control(device: Device, collaboration: Collaboration) -> Control:
    """Read from the database anew, so the arguments may be stale or even deleted rows."""
    now = Device.objects.select_related("owner").filter(pk=device.pk).first()
    if now is None:
        return _stop(LeaveCause.REVOKED, f"{NO_SUCH_DEVICE} {START_ANEW}")
    if now.is_revoked:
        why = f": {now.revoked_reason}" if now.revoked_reason else "."
        return _stop(LeaveCause.REVOKED, f"This device was revoked{why}")
    if now.owner.is_banned:
        return _stop(LeaveCause.BANNED, f"This account is banned: {now.owner.ban_reason}")
    fresh = Collaboration.objects.filter(pk=collaboration.pk).first()
    if fresh is None:
        return _stop(LeaveCause.FINISHED, "This collaboration was removed.")
    return _control_by_state(fresh)


def _control_by_state(collaboration: Collaboration) -> Control:
    reason = collaboration.state_reason
    match State(collaboration.state):
        case State.DRAFT:
            return Control(wish=Wish.PAUSE, reason="The collaboration is not open yet.")
        case State.PAUSED:
            return Control(wish=Wish.PAUSE, reason=reason or "The organiser paused it.")
        case State.FINISHED:
            finished = reason or "The collaboration has finished."
            return Control(wish=Wish.FINISH, reason=finished, cause=LeaveCause.FINISHED)
        case State.FAILED:
            return _stop(LeaveCause.FAILED, reason or "The collaboration has failed.")
        case _:
            return Control(wish=Wish.RUN)


def _stop(cause: LeaveCause, reason: str) -> Control:
    return Control(wish=Wish.STOP, reason=reason[:300], cause=cause)
