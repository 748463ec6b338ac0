"""The mean of B A, which A and B averaged one by one are not: how far off, and what helps."""

from __future__ import annotations

import pytest
import torch

from tests.trainer.averaging import end_round
from tests.trainer.models import make_batch, play_round
from tests.trainer.tiny_bases import adapt, lora, make_learner
from trainer import catalogue
from trainer.adapters import _factors
from trainer.engine import checkpoint
from trainer.recipe import Choice
from trainer.swarm.codec import Codec

RANK = 3
MODES = ("average", "freeze_a", "exact")


def recipe_of(folder, mode, strategy="fedavg", exact_devices=2, **params):
    adapter = lora(rank=RANK, mode=mode, exact_devices=exact_devices)
    return adapt(folder, adapter=adapter, strategy=Choice(name=strategy, params=params))


def moved(learner, seed, tokens=1, scale=0.3):
    """As if it had trained: every parameter is elsewhere."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for param in learner.params:
            param.add_(torch.randn(param.shape, generator=generator) * scale)
    learner.context.tokens = learner.context.samples = learner.context.steps = tokens
    return learner


def peers_of(folder, mode, count=2, **more):
    """Begun, and once averaged, so that B is something."""
    recipe = recipe_of(folder, mode, **more)
    peers = [make_learner(recipe, folder) for _ in range(count)]
    end_round([moved(peer, 50) for peer in peers])
    return [moved(peer, seed, tokens=seed) for seed, peer in enumerate(peers, 1)]


def products(learner):
    """{module: B A}, in double precision."""
    params = dict(learner.model.named_parameters())
    modules = [name.removesuffix(".lora_B.default.weight") for name in params if ".lora_B." in name]
    pairs = {
        m: [params[f"{m}.lora_{x}.default.weight"].detach().double() for x in "BA"] for m in modules
    }
    return {module: b @ a for module, (b, a) in pairs.items()}


def products_at_anchor(peer):
    now = [param.detach().clone() for param in peer.params]
    with torch.no_grad():
        for param, anchor in zip(peer.params, peer.anchor, strict=True):
            param.copy_(anchor)
    found = products(peer)
    with torch.no_grad():
        for param, value in zip(peer.params, now, strict=True):
            param.copy_(value)
    return found


def mean_of(peers):
    total = sum(peer.context.tokens for peer in peers)
    each = [(products(peer), peer.context.tokens / total) for peer in peers]
    return {module: sum(share * found[module] for found, share in each) for module in each[0][0]}


def length(products):
    return sum(float(product.square().sum()) for product in products.values()) ** 0.5


def minus(one, other):
    return {module: one[module] - other[module] for module in one}


@pytest.mark.parametrize(("strategy", "count"), [("fedavg", 2), ("fedavg", 5), ("diloco", 2)])
def test_an_average_of_a_and_b_tells_how_far_it_is_from_that_of_their_products(
    base_of, strategy, count
):
    """Of what was averaged: where DiLoCo then goes with it is another matter."""
    peers = peers_of(base_of(), "average", count, strategy=strategy)
    before, wanted = products_at_anchor(peers[0]), mean_of(peers)
    total = sum(peer.context.tokens for peer in peers)
    means = [
        sum(
            peer.context.tokens / total * param.detach()
            for peer, param in zip(peers, each, strict=True)
        )
        for each in zip(*(peer.params for peer in peers), strict=True)
    ]
    end_round(peers)
    assert {peer.adapted.missed for peer in peers} == {peers[0].adapted.missed}
    with torch.no_grad():
        for param, mean in zip(peers[1].params, means, strict=True):
            assert strategy == "diloco" or torch.allclose(param, mean, rtol=1e-4, atol=1e-6)
            param.copy_(mean)
    off = length(minus(products(peers[1]), wanted)) / length(minus(wanted, before))
    assert off > 0.05
    assert peers[0].adapted.missed == pytest.approx(off, rel=0.4)  # 64 readings


def test_where_no_changes_are_averaged_nothing_is_told(base_of):
    peers = peers_of(base_of(), "average", 2, strategy="fednova")
    end_round(peers)
    assert peers[0].adapted.missed is None


def test_the_average_of_b_alone_is_exact_and_a_never_changes(base_of, tmp_path):
    peers = peers_of(base_of(), "freeze_a", 3)
    assert all(".lora_B." in name for name in peers[0].names)
    first = {n: p.detach().clone() for n, p in peers[0].model.named_parameters() if ".lora_A." in n}
    wanted = mean_of(peers)
    end_round(peers)
    assert length(minus(products(peers[0]), wanted)) < 1e-5 * length(wanted)
    assert peers[0].adapted.missed is None
    play_round(peers[0], make_batch())
    now = dict(peers[0].model.named_parameters())
    assert all(torch.equal(now[name], value) and value.any() for name, value in first.items())
    path = tmp_path / checkpoint.filename(1)
    peers[0].save(path)
    again = make_learner(peers[0].recipe, base_of())
    again.load(path)
    assert again.fingerprint() == pytest.approx(peers[0].fingerprint())


@pytest.mark.parametrize(
    ("strategy", "count"), [("fedavg", 2), ("fedavg", 5), ("fedprox", 3), ("scaffold", 2)]
)
def test_the_exact_mean_is_the_best_of_its_rank(base_of, strategy, count):
    """By the singular values of the whole matrices (Eckart and Young), which nobody sends."""
    peers = peers_of(base_of(), "exact", count, strategy=strategy, exact_devices=count)
    before, wanted = products_at_anchor(peers[0]), mean_of(peers)
    end_round(peers)
    lost = {}
    for module, product in products(peers[0]).items():
        u, size, v = torch.linalg.svd(wanted[module])
        best = (u[:, :RANK] * size[:RANK]) @ v[:RANK]
        torch.testing.assert_close(product, best, rtol=1e-3, atol=1e-3 * float(size[0]))
        lost[module] = wanted[module] - best
    off = length(lost) / length(minus(wanted, before))
    assert off > 0.05 and peers[0].adapted.missed == pytest.approx(off, rel=0.4)
    for mine, other in zip(peers[0].params, peers[1].params, strict=True):
        assert torch.equal(mine, other)


def test_nothing_is_lost_where_the_mean_product_has_the_adapters_rank(base_of):
    """All have the same A, or all the same B: then so has the mean."""
    for still in (".lora_A.", ".lora_B."):
        peers = peers_of(base_of(), "exact", 3)
        with torch.no_grad():
            for peer in peers:
                for name, param, anchor in zip(peer.names, peer.params, peer.anchor, strict=True):
                    if still in name:
                        param.copy_(anchor)
        wanted = mean_of(peers)
        end_round(peers)
        assert length(minus(products(peers[0]), wanted)) < 1e-4 * length(wanted)
        assert peers[0].adapted.missed < 1e-4


def test_alone_exact_is_local_training(base_of):
    (peer,) = peers_of(base_of(), "exact", 1)
    wanted = products(peer)
    end_round([peer])
    assert length(minus(products(peer), wanted)) < 1e-5 * length(wanted)


@pytest.mark.parametrize("codec", ["fp32", "fp16", "int8"])
def test_exact_is_nearer_than_average_on_any_wire_and_all_hold_the_same(base_of, codec):
    """And no farther off where more devices come than it was made for."""
    misses = {}
    for mode, devices in (("average", 2), ("exact", 2), ("exact", 4)):
        peers = peers_of(base_of(), mode, 4, exact_devices=devices)
        end_round(peers, codec=Codec(codec))
        misses[mode, devices] = peers[0].adapted.missed
        first = peers[0].params
        for peer in peers[1:]:
            assert all(torch.equal(a, b) for a, b in zip(first, peer.params, strict=True))
    assert misses["exact", 2] <= misses["average", 2]
    assert 0 < misses["exact", 4] < 0.95 * misses["average", 2]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_learns_and_offers_what_is_counted(base_of, mode):
    recipe = recipe_of(base_of(), mode)
    peers = [make_learner(recipe, base_of()) for _ in range(3)]
    losses = []
    for number in range(20):
        losses += [peer.learn(make_batch(10 * number + n)) for n, peer in enumerate(peers)]
        assert sum(t.numel() for t in peers[0].offer_shapes()) == catalogue.offered_values(recipe)
        end_round(peers)
    assert sum(losses[-9:]) < 0.9 * sum(losses[:9])
    assert catalogue.trained_parameters(recipe) == sum(p.numel() for p in peers[0].params)


@pytest.mark.parametrize("mode", MODES)
def test_averaged_gradients_are_exact_in_every_mode(base_of, mode):
    recipe = recipe_of(base_of(), mode, strategy="dedloc")
    learner = make_learner(recipe, base_of())
    assert sum(t.numel() for t in learner.offer_shapes()) == catalogue.trained_parameters(recipe)
    play_round(learner, make_batch())
    assert learner.adapted.missed is None


@pytest.mark.parametrize(
    ("strategy", "params"),
    [
        ("diloco", {}),
        ("fednova", {}),
        ("fedavg", {"outer_learning_rate": 0.5}),
        ("fedprox", {"outer_momentum": 0.5}),
    ],
)
def test_exact_is_refused_where_no_mean_is_applied(base_of, strategy, params):
    recipe = recipe_of(base_of(), "exact", strategy=strategy, **params)
    with pytest.raises(ValueError, match="mode exact makes the average"):
        catalogue.check(recipe)


def test_a_product_is_found_again_from_its_sketches(base_of):
    generator = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.randn(shape, generator=generator)

    changes = [_factors.Factors(random(2, 50), random(30, 2)) for _ in range(3)]
    found = [_factors.sketches(1, "m", change, 6) for change in changes]
    y, w = (sum(parts) / 3 for parts in zip(*found, strict=True))
    mean = sum(change.b @ change.a for change in changes) / 3
    none = _factors.Factors(torch.zeros(6, 50), torch.zeros(30, 6))
    like = _factors.Factors(random(6, 50), torch.zeros(30, 6))
    a, b = _factors.refactored(1, "m", like, none, y, w)
    torch.testing.assert_close((b @ a).float(), mean, rtol=1e-3, atol=1e-4)
