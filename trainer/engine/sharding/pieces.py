"""How tensors are cut among the processes of a group, and put together again in the first one.

All processes call each of these at once. `shares` says how many elements of a tensor, in their
order, each process has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def local(tensor: Any) -> Tensor:
    """This process's part of a tensor that is spread over several."""
    found: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return found


def agree(counts: Iterable[int]) -> list[list[int]]:
    """For each tensor the shares of all processes; `counts` are this one's."""
    mine = torch.tensor(list(counts))
    all_of_them = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(all_of_them, mine)
    return torch.stack(all_of_them, dim=1).tolist()  # type: ignore[no-any-return]


def deal(whole: Tensor | None, mine: Tensor, shares: Sequence[int]) -> None:
    """Each process gets its share of what the first one has."""
    if whole is not None:
        for other, piece in enumerate(whole.cpu().flatten().split(list(shares))):
            if other == 0:
                mine.copy_(piece.view_as(mine))
            elif shares[other]:
                dist.send(piece, other)
    elif mine.numel():
        there = torch.empty_like(mine, device="cpu")
        dist.recv(there, 0)
        mine.copy_(there)


def fetch(mine: Tensor, shares: Sequence[int], shape: torch.Size) -> Tensor:
    """To the first process, all shares in one new tensor; to the others nothing of use."""
    if dist.get_rank():
        if mine.numel():
            dist.send(mine.cpu().contiguous(), 0)
        return mine
    whole = torch.empty(shape, dtype=mine.dtype)
    for other, piece in enumerate(whole.view(-1).split(list(shares))):
        if other == 0:
            piece.copy_(mine.flatten())
        elif shares[other]:
            dist.recv(piece, other)
    return whole
