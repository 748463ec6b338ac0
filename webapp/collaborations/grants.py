"""What a device is given when it joins: all it needs, or the reason why not."""

from __future__ import annotations

import time

from trainer.grant import Checkpoint, JoinGrant, JoinRequest
from trainer.passport import Passport
from trainer.wire import LeaveCause, version_problem
from webapp.accounts.selectors import is_system
from webapp.collaborations import passports
from webapp.collaborations.control import current_control
from webapp.collaborations.models import Collaboration, State
from webapp.collaborations.states import ENDED
from webapp.core.errors import UserError
from webapp.devices.models import Device

WEBSOCKET = "/ws/device/"


def join_grant(
    device: Device,
    collaboration: Collaboration,
    request: JoinRequest,
    *,
    checkpoint: Checkpoint | None = None,
) -> JoinGrant:
    """Raises UserError: kind `update`, `revoked`, `banned`, `wait` (no swarm) or none (state)."""
    passport = renew_passport(device, collaboration, request)
    opens_the_swarm = is_system(device.owner)
    if not (collaboration.bootstrap or opens_the_swarm):
        raise UserError(
            f"The swarm of {collaboration.title} is starting.",
            "Try again in a few seconds.",
            kind="wait",
        )
    revision = collaboration.revision
    return JoinGrant(
        recipe=revision.recipe,
        recipe_sha256=revision.sha256,
        passport=passport,
        authority=passports.authority_public(),
        bootstrap=() if opens_the_swarm else tuple(collaboration.bootstrap),
        checkpoint=checkpoint,
        control=current_control(device, collaboration),
        websocket=WEBSOCKET,
        server_time=time.time(),
    )


def renew_passport(device: Device, collaboration: Collaboration, request: JoinRequest) -> Passport:
    """A fresh passport, when this device may (still) take part. Raises UserError otherwise."""
    if problem := version_problem(request.wire_version):
        raise UserError(problem, "Download a new launcher on the Join page.", kind="update")
    admit(device, collaboration)
    return passports.issue(device.owner, device, request.peer_key, collaboration)


def admit(device: Device, collaboration: Collaboration) -> None:
    """Raises UserError where this device may not, or not any more, take part."""
    control = current_control(device, collaboration)
    if control.cause in (LeaveCause.REVOKED, LeaveCause.BANNED):
        raise UserError(control.reason, kind=str(control.cause))
    if collaboration.state == State.DRAFT:
        raise UserError(f"{collaboration.title} is not open yet.", "Come back when it is.")
    if collaboration.state in ENDED:
        raise UserError(control.reason, "Choose another collaboration on the site.")
