"""The model, its optimizer and the strategy's state: all that a round changes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_, get_total_norm

from trainer import catalogue
from trainer.device import memory
from trainer.device.precision import Kind
from trainer.engine import checkpoint, recompute, streaming
from trainer.engine.adapted import Adapted
from trainer.engine.arithmetic import Arithmetic, chosen
from trainer.engine.fingerprint import fingerprint
from trainer.engine.model import build, measure, place, trainable
from trainer.engine.optimizers import make_optimizer, set_steps
from trainer.engine.schedule import learning_rate
from trainer.families.base import Batch
from trainer.recipe import Recipe
from trainer.strategies.base import Context, Member, Offer, norm_of


class Learner:
    """`round` is the round it is in; all peers of a round hold the same anchor and shared state.

    Both change under a lock, because newcomers download them on another thread. Only what trains is
    held, averaged and stored: of a base (its folder is `base`) with an adapter, the adapter alone.
    If it `streams`, the rest of the base is not even held (`engine.streaming`).
    """

    may_recompute = True

    def __init__(
        self,
        recipe: Recipe,
        pad_id: int,
        base: Path | None = None,
        *,
        streams: bool = False,
        computes: Kind | None = None,
    ) -> None:
        """`computes`: what its passes compute in; None: what this device chooses."""
        self.recipe, self.streams = recipe, streams
        self.arithmetic = Arithmetic(computes or chosen(recipe))
        self.round = 0
        self.late: Offer | None = None  # of an earlier round, in place of this one's
        self._lock = threading.RLock()
        self.strategy = catalogue.create("strategies", recipe.strategy)
        self.device = place()
        self.family, self.model = build(recipe, pad_id, base, streams=streams)
        self.adapted = Adapted(self)
        named = trainable(self.model)
        self.names = [name for name, _ in named]
        self.params = [param for _, param in named]
        self.anchor = [param.detach().clone() for param in self.params]
        self.optimizer = self._make_optimizer()
        self.recomputes = False
        if streams:
            self.recompute()
        self.held_bytes = 0  # memory of this process while the newest micro-batch was at its height
        self.context = self.begin()

    def _make_optimizer(self) -> torch.optim.Optimizer:
        return make_optimizer(self.strategy, self.recipe.optimizer, self.params)

    @property
    def device_name(self) -> str:
        is_gpu = self.device.type == "cuda"
        return torch.cuda.get_device_name(self.device) if is_gpu else self.device.type

    # ------------------------------------------------------------ one round
    def begin(self) -> Context:
        """Starts the round anew: nothing accumulated, parameters at the anchor."""
        gradient, self.late = self._rewind(), None
        self.context = Context(
            params=self.params,
            anchor=self.anchor,
            gradient=gradient,
            step=self._step,
            round=self.round,
            learning_rate=learning_rate(self.recipe.optimizer, self.round),
        )
        self.strategy.start(self.context)
        return self.context

    @torch.no_grad()
    def _rewind(self) -> list[Tensor]:
        """Parameters at the anchor; a gradient of zeros, which micro-batches add to."""
        gradient = []
        for param, anchor in zip(self.params, self.anchor, strict=True):
            param.copy_(anchor)
            param.grad = torch.zeros_like(param)
            gradient.append(param.grad)
        return gradient

    def learn(self, batch: Batch, rows: int = 0) -> float | None:
        """Adds one micro-batch to the round, `rows` sequences at a time (0: all); its summed loss.

        None when that is not finite, or the gradient that a local step would follow. Raises
        Dropped where only this micro-batch is lost, as if it had never been.
        """
        value = self._accumulate(batch, rows or batch.samples)
        if value is None:
            return None
        if self.strategy.local and not torch.isfinite(get_total_norm(self.context.gradient)):
            return None
        self.context.samples += batch.samples
        self.context.tokens += batch.tokens
        self.context.batch_tokens = batch.tokens
        with torch.no_grad():
            self.strategy.correct(self.context)
            self.context.steps += 1
            self.strategy.stepped(self.context)
        return value

    def _accumulate(self, batch: Batch, rows: int) -> float | None:
        """Adds to the gradient; the summed loss, None when it is not finite. Raises Dropped."""
        passes = partial(self._passes, batch, rows)
        return self.arithmetic.gather(self.params, batch.tokens, passes)

    def _passes(self, batch: Batch, rows: int, factor: float) -> float | None:
        value, self.held_bytes = 0.0, 0
        for part in batch.parts(rows):
            with self.arithmetic.forward(self.device):
                loss = self.family.loss_sum(self.model, part.to(self.device))
            self.held_bytes = max(self.held_bytes, memory.used_bytes())
            value += float(loss.detach())
            if not torch.isfinite(loss):
                return None
            (factor * loss).backward()
        return value

    def recompute(self) -> None:
        """From now on, where memory is short; see `engine.recompute`."""
        if not self.recomputes:
            recompute.recompute(self.family.layers(self.model))
            self.recomputes = True

    @property
    def thrift(self) -> str:
        """What it does for want of memory or in 16 bits, in words for its volunteer."""
        saves = (
            streaming.IN_WORDS if self.streams else recompute.IN_WORDS if self.recomputes else ""
        )
        return "; ".join(words for words in (saves, self.arithmetic.words) if words)

    @property
    def full(self) -> bool:
        """Whether this peer may take no more local steps in this round."""
        return 0 < self.strategy.most_steps <= self.context.steps

    @torch.no_grad()
    def offer(self) -> Offer | None:
        """What the round has accumulated; None when it is not finite."""
        offer = self.late or self.adapted.offer()
        finite = all(bool(torch.isfinite(tensor).all()) for tensor in offer.tensors)
        return offer if finite else None

    @torch.no_grad()
    def drift(self) -> float:
        """How far (L2) this peer's own steps have led from the anchor."""
        pairs = zip(self.params, self.anchor, strict=True)
        return norm_of(param - anchor for param, anchor in pairs)

    @torch.no_grad()
    def offer_shapes(self) -> Sequence[Tensor]:
        """Tensors of the shapes of every offer of this strategy."""
        return self.adapted.offer().tensors

    def evaluate(self, batches: Sequence[Batch]) -> tuple[float, int]:
        """Mean loss per target token, and the number of those, with the current parameters."""
        self.model.eval()
        loss, tokens = measure(self.family, self.model, batches)
        self.model.train()
        return loss / max(tokens, 1), tokens

    def accept(self, mean: Sequence[Tensor], members: Sequence[Member]) -> None:
        """Applies the average and enters the next round."""
        on_device = [tensor.to(self.device) for tensor in mean]
        with self._lock, torch.no_grad():
            self.strategy.accept(self.context, self.adapted.of_strategy(on_device), members)
            self.adapted.settle(on_device)
            self.round += 1
            for param, anchor in zip(self.params, self.anchor, strict=True):
                anchor.copy_(param)
        self.begin()

    def _step(self, mean: Sequence[Tensor]) -> None:
        """Uses the accumulated gradient up."""
        for accumulated, gradient in zip(self.context.gradient, mean, strict=True):
            accumulated.copy_(gradient)
        clip_grad_norm_(self.params, self.recipe.optimizer.clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = self.context.learning_rate
        self.optimizer.step()
        for accumulated in self.context.gradient:
            accumulated.zero_()

    def close(self) -> None:
        """Nothing to end."""

    # ------------------------------------------------------------ state
    def fingerprint(self) -> tuple[float, ...]:
        """Of the anchor."""
        return fingerprint(self.anchor, self.recipe.seed)

    def state(self) -> tuple[dict[str, int], list[Tensor]]:
        """Copies of what a newcomer needs: the round, the anchor and the shared state."""
        with self._lock:
            return {"round": self.round}, [t.detach().cpu().clone() for t in self._state_tensors()]

    def load_state(self, round_number: int, tensors: Sequence[Tensor]) -> None:
        """Takes a state of `state()`'s shapes; what was accumulated is dropped."""
        with self._lock, torch.no_grad():
            for target, source in zip(self._state_tensors(), tensors, strict=True):
                target.copy_(source)
            self.round = round_number
            self.strategy.joined()
            if not self.strategy.local:
                set_steps(self.optimizer, round_number)
        self.begin()

    def _state_tensors(self) -> list[Tensor]:
        shared = self.strategy.shared
        return [*self.anchor, *(tensor for kind in sorted(shared) for tensor in shared[kind])]

    def _state_names(self) -> list[str]:
        kinds = ["model", *sorted(self.strategy.shared)]
        return [f"{kind}.{name}" for kind in kinds for name in self.names]

    def save(self, path: Path) -> None:
        """Raises OSError when there is no room; what was there before is untouched."""
        metadata, tensors = self.state()
        named = dict(zip(self._state_names(), tensors, strict=True)) | self.adapted.kept()
        checkpoint.write(path, named, metadata["round"], self.recipe.sha256())

    def load(self, path: Path) -> None:
        """Raises checkpoint.BadCheckpoint when the file is broken or of another recipe."""
        shapes = {
            name: tuple(tensor.shape)
            for name, tensor in zip(self._state_names(), self._state_tensors(), strict=True)
        }
        round_number, named = checkpoint.read(path, shapes, self.recipe.sha256())
        self.load_state(round_number, [named[name] for name in self._state_names()])
