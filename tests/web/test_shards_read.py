"""Devices that ask at once, over the API, and agents that read one text together by it."""

from __future__ import annotations

import gzip
import json
import random
import threading
from collections import Counter
from functools import partial
from itertools import islice

import pytest

from tests.at_once import at_once
from tests.factories import make_device, make_user
from tests.rows import rows_of
from tests.web.readers import RENEWAL, START, Reader
from trainer.agent.join import Api
from trainer.agent.shards import ShardHolder
from trainer.data.shards import SharedText
from trainer.grant import ShardAnswer
from trainer.sources import stream
from trainer.sources.kinds import TextSource
from trainer.sources.places import Disk
from webapp.accounts.services import ban
from webapp.collaborations.services import coordinator_device
from webapp.devices.services import revoke
from webapp.shards import services
from webapp.shards.models import Shard

ROWS = 600


class Grant:
    def __init__(self, collaboration) -> None:
        self.recipe, self.recipe_sha256 = collaboration.recipe, collaboration.revision.sha256


class Volunteer:
    def __init__(self, name, site, collaboration, path, api=Api) -> None:
        _, token = make_device(make_user(name), name)
        self.name, self.api = name, api(site, token)
        self.holder = ShardHolder(self.api, collaboration.slug, Grant(collaboration))
        self.text = SharedText(TextSource(Disk(path)), 0, self.holder, "seed")
        self.read: list[tuple[int, str]] = []

    def shards(self):
        """Endless: each shard it gets, row by row, with the pass that this is."""
        for row in rows_of(self.text, self.holder):
            yield row.origin.held.lease.passes, row.text

    def train(self) -> None:
        """Until it has begun the second pass."""
        for passes, row in self.shards():
            if passes:
                return
            self.read.append((passes, row))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "packed"])
def test_c13_three_agents_read_each_row_once_while_one_of_them_leaves(
    live_server, collaboration, tmp_path, monkeypatch, packed
):
    monkeypatch.setattr(services, "FEWEST", 6)
    monkeypatch.setattr(stream, "BLOCK_ITEMS", 20)
    path = tmp_path / "text"
    path.write_bytes(packed("".join(f"row {number}\n" for number in range(ROWS)).encode()))
    anna, bela, cyril = (
        Volunteer(name, live_server.url, collaboration, path) for name in ("anna", "bela", "cyril")
    )
    cyril.read += islice(cyril.shards(), 150)
    cyril.holder.leave()
    at_once(anna.train, bela.train)
    read = Counter(row for one in (anna, bela, cyril) for _, row in one.read)
    assert read == Counter(f"row {number}" for number in range(ROWS))
    assert anna.read and bela.read
    for one in (anna, bela):
        one.holder.leave()
    assert not Shard.objects.exclude(device=None).exists()


def post(client, reader, **facts):
    return client.post(
        "/api/v1/device/collaborations/demo/shards",
        reader.request(**facts).model_dump_json(),
        content_type="application/json",
        headers={"Authorization": f"Bearer {reader.token}"},
    )


def test_a_device_leases_over_the_api_until_it_is_shut_out(client, olga, collaboration):
    anna, bela = Reader("anna", collaboration), Reader("bela", collaboration)
    answer = post(client, anna)
    assert answer.status_code == 200
    lease = ShardAnswer.model_validate_json(answer.content).lease
    assert (lease.passes, lease.position, lease.num_shards) == (0, 0, services.FEWEST)
    assert json.loads(post(client, anna, leaving=True).content)["lease"] is None
    ban(bela.device.owner, by=olga, reason="made-up samples")
    assert (post(client, bela).status_code, post(client, bela).json()["kind"]) == (403, "banned")
    revoke(anna.device, by=anna.device.owner)
    assert (post(client, anna).status_code, post(client, anna).json()["kind"]) == (403, "revoked")


def test_a_coordinator_hears_when_a_device_last_asked_and_nobody_else_does(client, collaboration):
    anna = Reader("anna", collaboration)
    _, token = coordinator_device(collaboration)

    def heard(token):
        headers = {"Authorization": f"Bearer {token}"}
        return client.get("/api/v1/device/collaborations/demo/shards", headers=headers)

    assert heard(token).json() == {"heard_at": None}
    anna.ask()
    anna.ask(RENEWAL)
    assert heard(token).json() == {"heard_at": (START + RENEWAL).timestamp()}
    assert (heard(anna.token).status_code, heard(anna.token).json()["kind"]) == (403, "forbidden")


@pytest.mark.django_db(transaction=True)
def test_devices_that_ask_at_once_never_hold_the_same_shard(monkeypatch, collaboration):
    monkeypatch.setattr(services, "FEWEST", 3)
    readers = [Reader(f"reader-{number}", collaboration) for number in range(6)]
    looking = threading.Lock()
    holders: dict[int, str] = {}  # from an answer until just before the shard is given up
    wrong: list[object] = []

    def read(reader):
        name, draw = reader.device.name, random.Random(reader.device.name)
        for _ in range(25):
            act = draw.choice(["renew", "finished", "leaving"])
            if act != "renew" and reader.lease is not None:
                with looking:
                    del holders[reader.lease.shard]
            if (lease := reader.ask(**{act: True} if act != "renew" else {})) is not None:
                with looking:
                    if holders.setdefault(lease.shard, name) != name:
                        wrong.append((lease.shard, holders[lease.shard], name))

    at_once(*(partial(read, reader) for reader in readers))
    assert wrong == []
    assert Shard.objects.count() == 3
    assert sum(Shard.objects.values_list("passes", flat=True)) > 0
