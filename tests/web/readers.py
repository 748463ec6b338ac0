"""A device that reads a text of which the site leases it shards."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from tests.factories import make_device, make_user
from trainer.grant import ShardRequest
from webapp.shards import services

START = timezone.now()
RENEWAL = timedelta(seconds=services.RENEW_S)


class Reader:
    """One device that reads the first text, and what it was last told."""

    def __init__(self, name, collaboration, text=0) -> None:
        owner = make_user()
        self.device, self.token = make_device(owner, name)
        self.collaboration, self.text = collaboration, text
        self.lease = None
        self.reason = ""

    def request(self, **facts) -> ShardRequest:
        shard = self.lease.shard if self.lease else None
        sha256 = self.collaboration.revision.sha256
        return ShardRequest(**{"recipe_sha256": sha256, "text": self.text, "shard": shard, **facts})

    def ask(self, after=timedelta(0), **facts):
        answer = services.lease_shard(
            self.device, self.collaboration, self.request(**facts), now=START + after
        )
        self.lease, self.reason = answer.lease, answer.reason
        return self.lease
