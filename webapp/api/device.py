"""What an agent asks before it opens its websocket."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Router

from trainer.grant import (
    Checkpoint,
    DialBack,
    DialBackRequest,
    Enrolled,
    EnrolRequest,
    EvaluationAnswer,
    EvaluationRequest,
    Heard,
    JoinGrant,
    JoinRequest,
    KnownDevice,
    Placed,
    PlacementRequest,
    SecondStart,
    ShardAnswer,
    ShardRequest,
)
from trainer.passport import Passport, RevocationList
from trainer.recipe import Recipe
from trainer.wire import Slug
from webapp.accounts.selectors import is_system
from webapp.api.gates import DeviceRequest, DeviceToken, PerMinute, address_of
from webapp.api.problems import problems
from webapp.artifacts.selectors import newest_checkpoint
from webapp.collaborations.grants import admit, join_grant, renew_passport
from webapp.collaborations.models import Collaboration
from webapp.collaborations.passports import revocation_list
from webapp.collaborations.placement import place
from webapp.collaborations.selectors import collaboration_by_slug
from webapp.core.errors import UserError
from webapp.devices.dialback import dial_back
from webapp.devices.services import enrol as enrol_device
from webapp.devices.services import note_second_start
from webapp.held_out.services import next_part
from webapp.shards.selectors import heard_at
from webapp.shards.services import lease_shard

router = Router(tags=["device"])
PLACE = "/collaborations/{slug}"


@router.post(
    "/enrol",
    response={200: Enrolled} | problems(403, 404, 409, 410),
    throttle=PerMinute("enrol", 60),
)
def enrol(request: HttpRequest, body: EnrolRequest) -> Enrolled:
    """Exchanges the one-time code of a launcher for a device token. The token is shown once."""
    device, token = enrol_device(code=body.code, machine=body.machine)
    used = device.enrolmentcode_set.select_related("collaboration").get()
    return Enrolled(
        token=token,
        device=device.pk.hex,
        name=device.name,
        collaboration=used.collaboration.slug if used.collaboration else "",
    )


@router.post(
    "/again",
    auth=DeviceToken(),
    response={200: KnownDevice} | problems(401, 403),
    throttle=PerMinute("again", 30),
)
def again(request: DeviceRequest, body: SecondStart) -> KnownDevice:
    """Whether the site still takes this device, and under which name.

    The code stays good; the Join page it was made on says which device went on instead.
    """
    note_second_start(request.auth, code=body.code)
    return KnownDevice(device=request.auth.pk.hex, name=request.auth.name)


@router.post(
    "/placement",
    auth=DeviceToken(),
    response={200: Placed} | problems(401, 403),
    throttle=PerMinute("placement", 30),
)
def placement(request: DeviceRequest, body: PlacementRequest) -> Placed:
    """Which collaboration the site gives a device whose owner did not pick one, and why."""
    placed = place(request.auth, body.machine, now=timezone.now())
    where = placed.collaboration
    return Placed(
        collaboration=where.slug if where else "",
        title=where.title if where else "",
        reason=placed.reason,
    )


@router.get(
    PLACE + "/recipe",
    auth=DeviceToken(),
    response={200: Recipe} | problems(401, 403, 404, 409),
    throttle=PerMinute("recipe", 30),
)
def recipe(request: DeviceRequest, slug: Path[Slug]) -> Recipe:
    """What joining would be about. Nothing is noted of who asks."""
    collaboration = collaboration_by_slug(slug)
    admit(request.auth, collaboration)
    return collaboration.recipe


@router.post(
    PLACE + "/join",
    auth=DeviceToken(),
    response={200: JoinGrant} | problems(401, 403, 404, 409, 426),
    throttle=PerMinute("join", 30),
)
def join(request: DeviceRequest, slug: Path[Slug], body: JoinRequest) -> JoinGrant:
    """The recipe, a passport and where to find the swarm."""
    collaboration = collaboration_by_slug(slug)
    return join_grant(request.auth, collaboration, body, checkpoint=_newest(collaboration))


@router.post(
    PLACE + "/passport",
    auth=DeviceToken(),
    response={200: Passport} | problems(401, 403, 404, 409, 426),
    throttle=PerMinute("passport", 30),
)
def passport(request: DeviceRequest, slug: Path[Slug], body: JoinRequest) -> Passport:
    """A fresh passport for the same peer key; ask well before the old one expires."""
    return renew_passport(request.auth, collaboration_by_slug(slug), body)


@router.post(
    PLACE + "/shards",
    auth=DeviceToken(),
    response={200: ShardAnswer} | problems(401, 403, 404, 409),
    throttle=PerMinute("shards", 240),
)
def shards(request: DeviceRequest, slug: Path[Slug], body: ShardRequest) -> ShardAnswer:
    """Leases the device a part of a text that nobody else reads, renews that or takes it back."""
    return lease_shard(request.auth, collaboration_by_slug(slug), body, now=timezone.now())


@router.get(
    PLACE + "/shards",
    auth=DeviceToken(),
    response={200: Heard} | problems(401, 403, 404),
    throttle=PerMinute("heard", 60),
)
def heard(request: DeviceRequest, slug: Path[Slug]) -> Heard:
    """When a device last asked for a part of a text; only coordinators ask, and tell swarms."""
    _only_coordinators(request)
    when = heard_at(collaboration_by_slug(slug))
    return Heard(heard_at=when.timestamp() if when else None)


@router.post(
    PLACE + "/evaluation",
    auth=DeviceToken(),
    response={200: EvaluationAnswer} | problems(401, 403, 404, 409),
    throttle=PerMinute("evaluation", 60),
)
def evaluation(
    request: DeviceRequest, slug: Path[Slug], body: EvaluationRequest
) -> EvaluationAnswer:
    """Takes what a device measured of the held-out text, and gives it the next part of that."""
    return next_part(request.auth, collaboration_by_slug(slug), body, now=timezone.now())


@router.post(
    "/dialback",
    auth=DeviceToken(),
    response={200: DialBack} | problems(401, 403),
    throttle=PerMinute("dialback", 10),
)
def dialback(request: DeviceRequest, body: DialBackRequest) -> DialBack:
    """Dials the caller at its port: whether others can reach it. Takes up to 6 s."""
    return dial_back(address_of(request), body.port, body.word)


@router.get(
    "/revocations",
    auth=DeviceToken(),
    response={200: RevocationList} | problems(401, 403),
    throttle=PerMinute("revocations", 60),
)
def revocations(request: DeviceRequest) -> RevocationList:
    """Devices whose passports count no more; only coordinators ask, and tell their swarms."""
    _only_coordinators(request)
    return revocation_list()


def _only_coordinators(request: DeviceRequest) -> None:
    if not is_system(request.auth.owner):
        raise UserError("Only the site's own coordinators may ask this.", kind="forbidden")


def _newest(collaboration: Collaboration) -> Checkpoint | None:
    newest = newest_checkpoint(collaboration)
    if newest is None:
        return None
    return Checkpoint(
        round=newest.round,
        sha256=newest.file.sha256,
        size_bytes=newest.file.size_bytes,
        filename=newest.file.filename,
    )
