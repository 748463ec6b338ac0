"""States, permissions, controls, grants and the rules that end a collaboration."""

from __future__ import annotations

import time

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from tests.factories import make_collaboration, make_recipe
from trainer.grant import JoinRequest
from trainer.passport import InvalidPassport, verify
from trainer.recipe import Finish
from trainer.wire import WIRE_VERSION, LeaveCause, Wish
from webapp.accounts.services import ban, delete_account, lift_ban
from webapp.audit.models import Entry
from webapp.collaborations import finish_rules, passports, services
from webapp.collaborations.access import TABLE, may
from webapp.collaborations.control import current_control
from webapp.collaborations.grants import join_grant, renew_passport
from webapp.collaborations.models import State
from webapp.collaborations.selectors import collaboration_by_slug, visible_collaborations
from webapp.core.errors import UserError
from webapp.devices.services import revoke


@pytest.fixture
def request_to_join(peer_key):
    return JoinRequest(wire_version=WIRE_VERSION, agent_version="1", peer_key=peer_key)


def test_the_life_of_a_collaboration_is_recorded(olga):
    collaboration = services.create(title="Night shift", recipe=make_recipe("night"), by=olga)
    services.open_(collaboration, by=olga)
    assert collaboration.swarm_port is not None
    services.note_round(collaboration, 1)
    services.pause(collaboration, by=olga, reason="new cooling")
    services.resume(collaboration, by=olga)
    services.finish(collaboration, by=olga, reason="done")
    collaboration.refresh_from_db()
    assert collaboration.state == State.FINISHED
    assert collaboration.started_at <= collaboration.finished_at
    actions = list(Entry.objects.order_by("id").values_list("action", flat=True))
    assert actions == [
        f"collaboration.{act}"
        for act in ("created", "open", "started", "pause", "resume", "finish")
    ]


def test_one_that_was_paused_before_its_first_round_is_open_again(olga, collaboration):
    services.pause(collaboration, by=olga)
    services.resume(collaboration, by=olga)
    assert collaboration.state == State.OPEN


def test_a_finished_collaboration_stays_finished(olga, collaboration):
    services.finish(collaboration, by=olga)
    for act in (services.open_, services.pause, services.resume, services.finish):
        with pytest.raises(UserError):
            act(collaboration, by=olga)


def test_rounds_only_count_up(collaboration):
    for number in (3, 5, 4):
        services.note_round(collaboration, number)
    collaboration.refresh_from_db()
    assert (collaboration.round, collaboration.state) == (5, State.RUNNING)


def test_living_collaborations_have_ports_of_their_own(olga, settings):
    settings.SWARM_FIRST_PORT = 40000
    made = [make_collaboration(state=State.DRAFT) for _ in range(3)]
    for one in made:
        services.open_(one, by=olga)
    assert [one.swarm_port for one in made] == [40000, 40001, 40002]
    services.finish(made[0], by=olga)
    fourth = make_collaboration(state=State.DRAFT)
    services.open_(fourth, by=olga)
    assert fourth.swarm_port == 40000


def test_who_may_do_what(alice, olga, mallory, collaboration):
    draft = make_collaboration(state=State.DRAFT)
    nobody = AnonymousUser()
    organisers_only = set(TABLE) - {"see", "join", "download"}
    for action in organisers_only:
        assert may(olga, action, collaboration)
        for person in (alice, mallory, nobody):
            assert not may(person, action, collaboration)
    assert may(nobody, "see", collaboration)
    assert not may(alice, "see", draft)
    assert may(alice, "join", collaboration)
    assert not may(alice, "join", draft)
    assert not may(mallory, "join", collaboration)
    assert not may(nobody, "join", collaboration)


def test_a_volunteer_cannot_pause(alice, collaboration):
    with pytest.raises(UserError) as refused:
        services.pause(collaboration, by=alice)
    assert refused.value.kind == "forbidden"
    assert not Entry.objects.exists()


def test_drafts_are_seen_by_organisers_only(alice, olga, collaboration):
    draft = make_collaboration("draft", state=State.DRAFT)
    assert list(visible_collaborations(alice)) == [collaboration]
    assert collaboration_by_slug("draft", viewer=olga) == draft


def test_the_control_of_a_device_says_why(alice, olga, device, collaboration):
    assert current_control(device, collaboration).wish == Wish.RUN
    services.pause(collaboration, by=olga, reason="new cooling")
    paused = current_control(device, collaboration)
    assert (paused.wish, paused.reason) == (Wish.PAUSE, "new cooling")
    ban(alice, by=olga, reason="made-up samples")
    banned = current_control(device, collaboration)
    assert (banned.wish, banned.cause) == (Wish.STOP, LeaveCause.BANNED)
    assert "made-up samples" in banned.reason
    lift_ban(alice, by=olga)
    services.finish(collaboration, by=olga)
    finished = current_control(device, collaboration)
    assert (finished.wish, finished.cause) == (Wish.FINISH, LeaveCause.FINISHED)
    revoke(device, by=alice, reason="lost")
    assert current_control(device, collaboration).cause == LeaveCause.REVOKED


def test_the_devices_of_a_deleted_account_are_told_to_stop(alice, device, collaboration):
    delete_account(alice)
    control = current_control(device, collaboration)
    assert (control.wish, control.cause) == (Wish.STOP, LeaveCause.REVOKED)


def test_a_grant_holds_all_a_peer_needs(device, collaboration, request_to_join):
    services.note_swarm(collaboration, addresses=("/ip4/127.0.0.1/tcp/31330/p2p/Qm",))
    collaboration.refresh_from_db()
    grant = join_grant(device, collaboration, request_to_join)
    assert grant.recipe.sha256() == grant.recipe_sha256
    claims = verify(
        grant.passport, authority=grant.authority, collaboration="demo", now=time.time()
    )
    assert (claims.device, claims.peer_key) == (device.pk.hex, request_to_join.peer_key)
    assert 3500 < claims.expires_at - time.time() <= 3600
    with pytest.raises(InvalidPassport, match="expired"):
        verify(
            grant.passport,
            authority=passports.authority_public(),
            collaboration="demo",
            now=time.time() + 3601,
        )


def test_the_signing_key_is_private_to_its_owner(device, collaboration, peer_key, settings):
    passports.issue(device.owner, device, peer_key, collaboration)
    assert settings.AUTHORITY_KEY_FILE.stat().st_mode & 0o077 == 0


def test_no_passport_for_the_revoked_the_banned_the_old_and_the_finished(
    alice, olga, device, collaboration, request_to_join
):
    old = request_to_join.model_copy(update={"wire_version": 0})
    kinds = []

    def refused(request):
        with pytest.raises(UserError) as error:
            renew_passport(device, collaboration, request)
        kinds.append(error.value.kind)

    refused(old)
    ban(alice, by=olga, reason="made-up samples")
    refused(request_to_join)
    lift_ban(alice, by=olga)
    services.finish(collaboration, by=olga)
    refused(request_to_join)
    revoke(device, by=alice)
    refused(request_to_join)
    assert kinds == ["update", "banned", "", "revoked"]


def test_a_swarm_that_is_starting_asks_newcomers_to_wait(device, collaboration, request_to_join):
    with pytest.raises(UserError) as error:
        join_grant(device, collaboration, request_to_join)
    assert error.value.kind == "wait"


@pytest.mark.parametrize(
    ("rules", "held_out", "words"),
    [
        (Finish(), [(1, 0.1)], ""),
        (Finish(rounds=100), [], "100 rounds"),
        (Finish(rounds=101), [], ""),
        (Finish(samples=5000), [], "5,000 samples"),
        (Finish(held_out_loss=2.0), [(10, 2.5), (20, 1.9)], "reached the goal"),
        (Finish(held_out_loss=1.0), [(10, 2.5), (20, 1.9)], ""),
        (Finish(patience_rounds=30), [(10, 2.0), (20, 2.1), (40, 2.0)], "since round 10"),
        (Finish(patience_rounds=30), [(10, 2.0), (30, 1.9), (40, 2.2)], ""),
    ],
)
def test_the_rules_that_end_a_collaboration(rules, held_out, words):
    met = finish_rules.met_rule(rules, rounds=100, samples=5000, held_out=held_out)
    assert (words in met) if words else met == ""


def test_a_collaboration_ends_by_its_rule_and_says_which(olga):
    collaboration = make_collaboration("short", finish=Finish(held_out_loss=2.0))
    services.note_round(collaboration, 1)
    assert not finish_rules.check(collaboration)
    collaboration.rounds.create(
        round=1,
        outcome="clean",
        members=1,
        samples=8,
        tokens=80,
        loss=2.0,
        held_out_loss=1.5,
        at=timezone.now(),
    )
    assert finish_rules.check(collaboration)
    collaboration.refresh_from_db()
    assert collaboration.state == State.FINISHED
    assert "1.5" in collaboration.state_reason
    assert not finish_rules.check(collaboration)


def test_a_last_round_that_went_back_to_earlier_parameters_is_the_last_all_the_same(olga):
    collaboration = make_collaboration("short", finish=Finish(rounds=30))
    services.note_round(collaboration, 28)
    assert not finish_rules.check(collaboration)
    collaboration.checkpoints.create(round=30)
    assert finish_rules.check(collaboration)
