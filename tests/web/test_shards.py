"""Shards of a text: leased to one device at a time, given back, and nobody's while in doubt."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from tests.factories import make_collaboration, make_file
from tests.web.readers import RENEWAL, START, Reader
from trainer.recipe import Text
from webapp.accounts.services import delete_account
from webapp.collaborations.models import State
from webapp.core.errors import UserError
from webapp.shards import services
from webapp.shards.models import Shard
from webapp.shards.selectors import how_far


@pytest.fixture
def few(monkeypatch):
    """A text of two shards."""
    monkeypatch.setattr(services, "FEWEST", 2)


@pytest.fixture
def anna(collaboration):
    return Reader("anna", collaboration)


@pytest.fixture
def bela(collaboration):
    return Reader("bela", collaboration)


@pytest.fixture
def cyril(collaboration):
    return Reader("cyril", collaboration)


def test_two_devices_read_different_shards_and_keep_them(anna, bela):
    first, second = anna.ask().shard, bela.ask().shard
    assert first != second
    for minute in range(1, 20):
        assert anna.ask(RENEWAL * minute, position=minute).shard == first
        assert bela.ask(RENEWAL * minute).shard == second
    assert anna.lease.position == 19


def test_the_database_itself_keeps_a_device_from_two_shards_of_a_text(anna):
    anna.ask()
    other = Shard.objects.filter(device=None).first()
    with pytest.raises(IntegrityError), transaction.atomic():
        Shard.objects.filter(pk=other.pk).update(device=anna.device)


def test_who_vanishes_loses_the_lease_and_another_goes_on_where_it_was(few, anna, bela, cyril):
    lost = anna.ask().shard
    anna.ask(RENEWAL, position=40)
    bela.ask(RENEWAL)
    for minute in range(2, 6):
        assert cyril.ask(RENEWAL * minute) is None
        assert cyril.reason == "all 2 parts are being read by other devices"
        bela.ask(RENEWAL * minute)
    found = cyril.ask(RENEWAL + services.LEASE)
    assert (found.shard, found.position, found.passes) == (lost, 40, 0)


def test_a_shard_that_was_begun_is_gone_on_with_first(anna, bela):
    begun = anna.ask().shard
    anna.ask(leaving=True, position=7)
    assert not Shard.objects.exclude(device=None).exists()
    assert (bela.ask().shard, bela.lease.position) == (begun, 7)


def test_who_comes_late_but_before_anybody_else_goes_on_with_its_own(anna, bela):
    own = anna.ask().shard
    for minute in range(1, 20):
        bela.ask(RENEWAL * minute)
    late = anna.ask(RENEWAL * 20, position=99)
    assert (late.shard, late.position) == (own, 99)


def test_who_comes_too_late_gets_another_and_what_it_says_of_the_old_one_is_void(few, anna, bela):
    lost = anna.ask().shard
    kept = bela.ask().shard
    for minute in range(1, 6):
        bela.ask(RENEWAL * minute)
    bela.ask(RENEWAL * 6, finished=True)
    assert bela.lease.shard == lost
    late = anna.ask(RENEWAL * 7, position=10**6, finished=True)
    assert late.shard == kept
    assert (Shard.objects.get(number=lost).position, Shard.objects.get(number=lost).passes) == (
        0,
        0,
    )


def test_when_all_is_read_the_next_pass_begins_and_nobody_waits_for_the_last(few, anna, bela):
    slow = anna.ask().shard
    quick = bela.ask().shard
    assert (bela.ask(finished=True).shard, bela.lease.passes) == (quick, 1)
    anna.ask(finished=True)
    assert (anna.lease.shard, anna.lease.passes) == (slow, 1)
    assert anna.lease.position == 0


def test_a_device_alone_reads_every_shard_once_before_any_twice(anna):
    seen = [anna.ask()]
    for _ in range(services.FEWEST * 2 - 1):
        seen.append(anna.ask(finished=True, position=5))
    numbers = [lease.shard for lease in seen]
    assert sorted(numbers[: services.FEWEST]) == list(range(services.FEWEST))
    assert sorted(numbers[services.FEWEST :]) == list(range(services.FEWEST))
    assert {lease.passes for lease in seen[services.FEWEST :]} == {1}


def test_an_answer_that_was_lost_costs_nothing(anna):
    first = anna.lease = anna.ask()
    following = anna.ask(finished=True)
    anna.lease = first
    assert anna.ask(finished=True).shard == following.shard
    assert Shard.objects.get(number=first.shard).passes == 1


def test_leases_stay_valid_while_the_site_is_down_however_long(few, anna, bela, cyril):
    anna.ask()
    bela.ask()
    down = timedelta(hours=7)
    assert cyril.ask(down) is None
    own = bela.lease.shard
    assert bela.ask(down + RENEWAL, position=3).shard == own
    assert cyril.ask(down + RENEWAL * 2) is None
    for minute in range(3, 5):
        bela.ask(down + RENEWAL * minute)
    assert cyril.ask(down + services.LEASE).shard == 1 - own  # anna had all the time to come back


def test_a_short_absence_of_the_site_leaves_time_to_come_back(few, anna, bela):
    """Silence that is too short to be told from nobody's asking."""
    own = anna.ask(RENEWAL).shard
    assert services.SILENCE + RENEWAL < services.LEASE
    bela.ask(RENEWAL + services.SILENCE)
    assert Reader("new", anna.collaboration).ask(RENEWAL * 2 + services.SILENCE) is None
    assert anna.ask(RENEWAL * 2 + services.SILENCE).shard == own


def test_each_text_of_a_recipe_is_shared_out_by_itself_and_one_on_the_device_never(olga):
    texts = (
        Text(kind="site", file=make_file(b"a" * 10, "a.jsonl")),
        Text(kind="local", path="/home/me/notes.txt"),
        Text(kind="http", url="https://example.org/text.jsonl"),
        Text(kind="site", file=make_file(b"b", "b.jsonl").model_copy(update={"size_bytes": 2**28})),
        Text(kind="private"),
    )
    collaboration = make_collaboration("several", texts=texts)
    asked = [Reader(f"reader-{text}", collaboration, text) for text in range(6)]
    assert [asked[text].ask().num_shards for text in (0, 2, 3)] == [64, 64, 256]
    for text in (1, 4, 5):
        with pytest.raises(UserError, match="no such text"):
            asked[text].ask()
    with pytest.raises(UserError, match="no such text"):
        asked[0].ask(recipe_sha256="0" * 64)


@pytest.mark.parametrize("state", [State.DRAFT, State.FINISHED, State.FAILED])
def test_only_a_living_collaboration_leases(anna, state):
    anna.collaboration.state = state
    anna.collaboration.save()
    with pytest.raises(UserError):
        anna.ask()


def test_what_a_deleted_account_read_goes_back(few, anna, bela, cyril):
    anna.ask(position=0)
    anna.ask(position=12)
    bela.ask()
    delete_account(anna.device.owner)
    assert cyril.ask().position == 12


def test_the_console_tells_how_far_a_text_is_read(client, olga, few, anna, bela):
    page = f"/console/c/{anna.collaboration.slug}/"
    client.force_login(olga)
    assert "How far the texts" not in client.get(page).text
    anna.ask()
    bela.ask()
    bela.ask(finished=True)
    anna.ask(leaving=True)
    (told,) = how_far(anna.collaboration, now=START)
    assert (told.number, told.passes, told.num_read, told.num_leased) == (1, 0, 1, 1)
    assert "of the next one 1 of 2 parts are read, and 1 parts are with" in client.get(page).text
    bela.ask(services.LEASE)
    assert how_far(anna.collaboration, now=START + services.LEASE * 2)[0].num_leased == 0
