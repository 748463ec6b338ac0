"""Leases shards: to one device at a time, for a while, again and again as long as it asks.

No two devices ever read the same rows at the same time, as far as the site can tell: a shard
changes hands only when it was given back, or when its lease ran out while the site was there.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from trainer.grant import SILENCE_S, Lease, ShardAnswer, ShardRequest
from trainer.recipe import Text
from webapp.collaborations.grants import admit
from webapp.collaborations.models import Collaboration, Revision
from webapp.core.errors import UserError
from webapp.devices.models import Device
from webapp.shards.models import Pool, Shard

LEASE = timedelta(seconds=300)
RENEW_S = 60.0
SILENCE = timedelta(seconds=SILENCE_S)
SHARD_BYTES = 2**20
FEWEST, MOST = 64, 1024
PACKED = (".gz", ".bz2", ".xz", ".zst")  # each part takes a reading of the whole file


@transaction.atomic
def lease_shard(
    device: Device, collaboration: Collaboration, request: ShardRequest, *, now: datetime
) -> ShardAnswer:
    """What `device` reads next of one text. Raises UserError where it may not take part."""
    admit(device, collaboration)
    pool = _locked_pool(collaboration, request, now)
    _forgive_silence(pool, now)
    held = pool.shards.filter(device=device).first()
    if held is not None and _is_meant(held, request):
        held = _note(held, request)
    if request.leaving:
        if held is not None:
            _free(held)
        return ShardAnswer(lease=None, reason="It was given back.")
    shard = held or _next(pool, now)
    if shard is None:
        reason = f"all {pool.num_shards} parts are being read by other devices"
        return ShardAnswer(lease=None, reason=reason)
    shard.device, shard.expires_at = device, now + LEASE
    shard.save()
    return ShardAnswer(
        lease=Lease(
            shard=shard.number,
            num_shards=pool.num_shards,
            passes=shard.passes,
            position=shard.position,
            skip=shard.skip,
            valid_s=LEASE.total_seconds(),
            renew_s=RENEW_S,
        )
    )


def _locked_pool(collaboration: Collaboration, request: ShardRequest, now: datetime) -> Pool:
    revision = collaboration.revisions.filter(sha256=request.recipe_sha256).first()
    texts = revision.recipe.texts if revision is not None else ()
    if revision is None or request.text >= len(texts) or texts[request.text].is_on_device:
        raise UserError(
            f"{collaboration.title} has no such text to share out.",
            "Start the agent anew: it joins with the present recipe.",
            kind="unknown",
        )
    _make_pool(revision, request.text, texts[request.text], now)
    return Pool.objects.select_for_update().get(revision=revision, text=request.text)


def _make_pool(revision: Revision, number: int, text: Text, now: datetime) -> None:
    """At the first request for this text."""
    num_shards = _num_shards(text)
    pool, is_new = Pool.objects.get_or_create(
        revision=revision, text=number, defaults={"num_shards": num_shards, "heard_at": now}
    )
    if is_new:
        Shard.objects.bulk_create(Shard(pool=pool, number=one) for one in range(num_shards))


def _num_shards(text: Text) -> int:
    """About a megabyte each, of what can be read from anywhere.

    The site knows no size of a text behind a URL.
    """
    if text.file is None or text.file.filename.lower().endswith(PACKED):
        return FEWEST
    size_bytes = text.file.size_bytes
    return min(max(size_bytes // SHARD_BYTES, FEWEST), MOST)


def _forgive_silence(pool: Pool, now: datetime) -> None:
    """Who could not renew because the site was away gets a whole lease to do so."""
    if now - pool.heard_at > SILENCE:
        living = pool.shards.filter(device__isnull=False, expires_at__gt=pool.heard_at)
        living.update(expires_at=now + LEASE)
    pool.heard_at = max(now, pool.heard_at)
    pool.save(update_fields=["heard_at"])


def _is_meant(held: Shard, request: ShardRequest) -> bool:
    """Not in a pass after the one that it tells of: that was told twice, or before a crash."""
    return held.number == request.shard and request.passes in (None, held.passes)


def _note(held: Shard, request: ShardRequest) -> Shard | None:
    """How far its reader says to be; None when it is through."""
    if not request.finished:
        held.position, held.skip = request.position, request.skip
        return held
    held.passes, held.position, held.skip = held.passes + 1, 0, 0
    _free(held)
    return None


def _free(shard: Shard) -> None:
    shard.device, shard.expires_at = None, None
    shard.save()


def _next(pool: Pool, now: datetime) -> Shard | None:
    """Of those read least often, one that was begun already, else the first."""
    free = pool.shards.filter(Q(device__isnull=True) | Q(expires_at__lte=now))
    return free.order_by("passes", "-position", "number").first()
