"""The mean of products, which the product of means is not: how far they are apart, and its factors.

Devices train B and A by b and a: what each has then is (B + b_i)(A + a_i). Averaged one by one
they make (B + mean b)(A + mean a), which lacks the covariance mean(b_i a_i) - mean(b) mean(a).

Only sums travel, so that does not, but sketches do, which are sums as well: with fixed Gaussian O
of n columns and V of 2 n rows, Y = mean(b_i a_i O) and W = mean(V b_i a_i) give mean(b_i a_i) back
as Q (V Q)^+ W, where Q spans Y: exactly up to rank n, and roughly beyond it (Tropp et al. 2017,
algorithm 7).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.adapters.lora import READINGS


class Factors(NamedTuple):
    """B A of one matrix: `a` has shape (rank, inputs), `b` (outputs, rank)."""

    a: Tensor
    b: Tensor


Pairs = Mapping[str, Factors]  # by the name of the matrix


def gaussian(seed: int, name: str, *shape: int) -> Tensor:
    """The same wherever it is asked for."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
    return torch.randn(shape, generator=generator)


def readings(seed: int, pairs: Pairs) -> Tensor:
    """Sums of u B A x over all matrices, for fixed Gaussian u and x, in double precision.

    Linear in the products; as long (L2) as all products as one vector, up to chance.
    """
    total = torch.zeros(READINGS, dtype=torch.float64)
    for name, (a, b) in pairs.items():
        u = gaussian(seed, f"{name}/u", b.shape[0], READINGS)
        x = gaussian(seed, f"{name}/x", a.shape[1], READINGS)
        total += ((u.T @ b.cpu().float()) * (a.cpu().float() @ x).T).double().sum(1)
    return total / READINGS**0.5


def distance(seed: int, now: Pairs, before: Pairs, wanted: Tensor) -> float:
    """Of the changed products from those of which `wanted` are the readings of the change, as a
    share of that change.
    """
    missed = float((readings(seed, now) - readings(seed, before) - wanted.cpu()).norm())
    length = float(wanted.norm())
    return missed / length if length else 0.0


def sketches(seed: int, name: str, change: Factors, size: int) -> tuple[Tensor, Tensor]:
    """Of b a, which are `change`: Y of shape (outputs, size) and W of (2 size, inputs)."""
    right, left = _directions(seed, name, change, size)
    return change.b @ (change.a @ right), (left @ change.b) @ change.a


def refactored(
    seed: int, name: str, means: Factors, change: Factors, y: Tensor, w: Tensor
) -> Factors:
    """The factors, of the rank of `means`, nearest to the mean product.

    `means` are the averaged factors, `change` by what these differ from the anchor's, `y` and `w`
    the averages of `sketches`. A keeps its length and turns as little as it can.
    """
    a, b, d_a, d_b, y, w = (t.double().cpu() for t in (*means, *change, y, w))
    _, left = _directions(seed, name, means, y.shape[1])
    span, size, _ = torch.linalg.svd(y, full_matrices=False)
    span = span[:, size > 1e-6 * max(float(size[0]), 1e-30)]
    within = torch.linalg.lstsq(left.double() @ span, w).solution
    outer = torch.cat([b, span, d_b], dim=1)
    inner = torch.cat([a, within, -d_a])
    return _cut(outer, inner, a)


def _directions(seed: int, name: str, shape: Factors, size: int) -> tuple[Tensor, Tensor]:
    a, b = shape
    right = gaussian(seed, f"{name}/right", a.shape[1], size)
    left = gaussian(seed, f"{name}/left", 2 * size, b.shape[0])
    return right.to(a.device), left.to(a.device)


def _cut(outer: Tensor, inner: Tensor, like: Tensor) -> Factors:
    """`outer` `inner` by its largest singular values, as many as `like`, the A it had, has rows."""
    rank = like.shape[0]
    q_outer, r_outer = torch.linalg.qr(outer)
    q_inner, r_inner = torch.linalg.qr(inner.T)
    u, size, v = torch.linalg.svd(r_outer @ r_inner.T)
    rows = v[:rank] @ q_inner.T
    left, _, right = torch.linalg.svd(like @ rows.T)
    turn = left @ right  # the nearest to `like` of all bases of the same rows
    scale = float(like.norm()) / rank**0.5
    return Factors(scale * turn @ rows, (q_outer @ u[:, :rank] * size[:rank]) @ turn.T / scale)
