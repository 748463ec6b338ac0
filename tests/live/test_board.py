"""The board: who is counted, over which round, and that boards merge in any order."""

from __future__ import annotations

import random

from trainer.wire import Activity, Progress, Role
from webapp.live.board import LEASE_S, Board, Standing, apply, changes

NOW = 1000.0


def standing(device: str, round_: int, samples: int, loss: float, **fields: object) -> Standing:
    """`tokens` equal `samples` here, so that the figures are easy to follow."""
    activity = fields.pop("activity", Activity.TRAINING)
    said = {key: fields.pop(key) for key in ("link_mbit_s", "share") if key in fields}
    values = {"owner": 1, "row": device, "name": device, "role": Role.PEER, "seen": NOW}
    progress = Progress(
        round=round_,
        samples=samples,
        tokens=samples,
        loss_sum=loss * samples,
        samples_per_s=1.0,
        activity=activity,
        **said,
    )
    return Standing(device=device, progress=progress, **(values | fields))


def board_of(*standings: Standing) -> Board:
    board = Board()
    board.merge(standings)
    return board


def test_a10_peers_senders_coordinators_and_expired_are_counted_apart_and_loss_is_weighted():
    shown = board_of(
        standing("a", 7, 300, 4.0),
        standing("b", 7, 100, 2.0),
        standing("c", 7, 0, 0.0, role=Role.SENDER),
        standing("m", 7, 0, 0.0, role=Role.COORDINATOR),
        standing("e", 7, 50, 1.0, seen=NOW - 60),
        standing("d", 4, 10, 9.0),
    ).snapshot(NOW)
    counted = {key: shown[key] for key in ("peers", "senders", "coordinators", "expired", "behind")}
    assert counted == {"peers": 3, "senders": 1, "coordinators": 1, "expired": 1, "behind": 1}
    assert (shown["loss"], shown["samples"], shown["round"], shown["online"]) == (3.5, 400, 7, 4)


def test_a10_a_board_without_samples_has_no_loss_and_divides_by_nothing():
    assert Board().snapshot(NOW)["loss"] is None
    assert board_of(standing("a", 3, 0, 0.0)).snapshot(NOW)["loss"] is None


def test_loss_is_weighted_by_target_tokens_not_by_peers():
    shown = board_of(standing("a", 1, 10, 1.0), standing("b", 1, 100, 3.0)).snapshot(NOW)
    assert round(shown["loss"], 3) == 2.818


def test_an_absurd_loss_does_not_spoil_the_others():
    shown = board_of(standing("a", 1, 10, 2.0), standing("b", 1, 10, 1e300)).snapshot(NOW)
    assert shown["loss"] == 2.0


def test_one_claim_of_a_far_round_moves_nobody():
    honest = [standing("a", 7, 10, 2.0), standing("b", 7, 10, 2.0)]
    far = standing("x", 10**6, 10, 2.0)
    assert board_of(*honest, far).snapshot(NOW)["round"] == 7
    coordinator = standing("m", 7, 0, 0.0, role=Role.COORDINATOR)
    assert board_of(honest[0], far, coordinator).snapshot(NOW)["round"] == 7


def test_newcomers_do_not_vote_on_the_round():
    joining = [standing(name, 0, 0, 0.0, activity=Activity.CATCHING_UP) for name in "xyz"]
    shown = board_of(standing("a", 57, 10, 2.0), *joining).snapshot(NOW)
    assert (shown["round"], shown["peers"], shown["behind"]) == (57, 1, 3)


def test_b04_a_report_counts_until_its_lease_ends_and_no_longer():
    board = board_of(standing("a", 1, 10, 2.0))
    assert board.snapshot(NOW + LEASE_S)["online"] == 1
    assert board.snapshot(NOW + LEASE_S + 0.01)["online"] == 0


def test_who_says_good_bye_is_gone_at_once_and_may_come_back():
    board = board_of(standing("a", 1, 10, 2.0))
    board.update(standing("a", 1, 10, 2.0, seen=NOW + 1, gone=True))
    assert (board.snapshot(NOW + 1)["online"], board.snapshot(NOW + 1)["expired"]) == (0, 0)
    board.update(standing("a", 1, 10, 2.0, seen=NOW + 2))
    assert board.snapshot(NOW + 2)["online"] == 1


def test_a_row_shows_the_measured_link_and_the_share_of_averaging_and_none_while_unknown():
    link = {"link_mbit_s": 48.25, "share": 0.38123}
    first, second = board_of(standing("a", 1, 10, 2.0, **link), standing("b", 1, 10, 2.0)).snapshot(
        NOW
    )["members"]
    assert (first["link_mbit_s"], first["share"]) == (48.25, 0.381)
    assert (second["link_mbit_s"], second["share"]) == (None, None)


def test_public_rows_hold_no_device_and_no_owner():
    rows = board_of(standing("secret-device", 1, 10, 2.0, row="r", owner=77)).snapshot(NOW)
    assert "secret-device" not in str(rows).replace("'name': 'secret-device'", "")
    assert "77" not in str(rows["members"])


def test_partial_boards_merge_in_any_order_any_number_of_times():
    rng = random.Random(0)
    for _ in range(200):
        all_ = [
            standing(
                f"p{rng.randrange(6)}",
                rng.randrange(3),
                rng.randrange(50),
                rng.random(),
                seen=NOW + i,
            )
            for i in range(20)
        ]
        parts = [Board() for _ in range(3)]
        for one in all_:
            rng.choice(parts).update(one)
        rng.shuffle(parts)
        merged = Board()
        for part in [*parts, parts[0]]:
            merged.merge(part.standings.values())
        assert merged.snapshot(NOW + 20) == board_of(*all_).snapshot(NOW + 20)


def test_a_snapshot_plus_the_later_changes_is_the_later_snapshot():
    rng = random.Random(1)
    board = Board()
    shown = board.snapshot(NOW)
    for i in range(300):
        one = standing(
            f"p{rng.randrange(9)}", i // 30, rng.randrange(60), rng.random(), seen=NOW + i
        )
        board.update(one)
        if i % 7 == 0:
            new = board.snapshot(NOW + i)
            shown = apply(shown, changes(shown, new))
            assert shown == new
