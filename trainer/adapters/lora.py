"""LoRA: h = W x + (alpha / r) B A x, where W is frozen, and A and B have rank r.

Hu et al. 2021, section 4.1: A begins Gaussian, B as 0. PEFT puts both beside each matrix; its own
first values for A are uniform, and others in each process. Here each A follows from the seed and
the name of its matrix, with variance 1 / inputs, so that A x is as long for any rank and width.

Devices that train by themselves have different A and B, and the product of the averages is not the
average of the products (`_factors`). Modes: `average` has it so; `freeze_a` trains B alone, of
which the product is linear (FFA-LoRA, Sun et al. 2024); `exact` also averages sketches of what is
missing, and cuts the mean product to rank r again by its singular values.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from trainer import bases
from trainer.adapters import base

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from trainer.adapters._factors import Factors
    from trainer.parts import Base, Matrix
    from trainer.strategies.base import Strategy

ALL = "all"
A, B = ".lora_A.default.weight", ".lora_B.default.weight"  # PEFT's names for them
READINGS = 64  # their mean square is within about a fifth of what it stands for
MEAN = (1.0, 0.0)  # the outer learning rate and momentum that go where the average points


class Params(base.Params):
    rank: int = Field(8, ge=1, le=1024, description="Rows of A, and columns of B.")
    alpha: float = Field(16.0, gt=0, le=4096, description="B A counts alpha / rank times.")
    targets: str = Field(
        ALL,
        max_length=300,
        pattern=r"^[\w.]+( *, *[\w.]+)*$",
        description="Names of the matrices, as q_proj, v_proj; all: every one of the layers.",
    )
    mode: Literal["average", "freeze_a", "exact"] = Field(
        "average",
        description="Where devices train by themselves. Average: of A and of B, which is not the "
        "average of B A; the page says how far off it is. Freeze_a: only B trains, exact and half "
        "the traffic. Exact: the average of B A, cut to the rank; several times the traffic.",
    )
    exact_devices: int = Field(
        2,
        ge=2,
        le=16,
        description="For mode exact: so many devices' products are averaged exactly, those of more "
        "about. Traffic is 1 + 1.5 times as many as that of average.",
    )


class Lora(base.Adapter):
    label = "LoRA (two thin matrices beside each large one)"
    trains = "a LoRA adapter beside a trained model"
    in_peft = True
    turn = 1
    Params = Params

    def matrices(self, base: Base) -> list[Matrix]:
        """Those that are adapted. Raises ValueError for a name that the base does not know."""
        names = [name.strip() for name in self.params.targets.split(",")]
        found = list(base.matrices) if names == [ALL] else bases.chosen(base, names)
        if not found:
            raise ValueError("this base names no matrices, so there is nothing to adapt")
        if thin := [m for m in found if self.params.rank > min(m.inputs, m.outputs)]:
            raise ValueError(
                f"rank {self.params.rank} is more than {thin[0].name} has "
                f"({thin[0].inputs} x {thin[0].outputs}): lower it, usual are 4 to 64"
            )
        return found

    def parameter_count(self, base: Base) -> int:
        a = 0 if self.params.mode == "freeze_a" else 1
        adapted = sum(m.count * (a * m.inputs + m.outputs) for m in self.matrices(base))
        return int(self.params.rank * adapted)

    def check(self, strategy: Strategy) -> None:
        if self.params.mode != "exact" or not strategy.local:
            return
        outer = strategy.params.outer_learning_rate, strategy.params.outer_momentum
        if not strategy.offers_changes or outer != MEAN:
            raise ValueError(
                f"mode exact makes the average of the devices' products, and {strategy.label} with "
                f"outer learning rate {outer[0]:g} and momentum {outer[1]:g} applies another "
                "change: choose fedavg, fedprox or scaffold with 1 and 0, or another mode"
            )

    def adds_to(self, strategy: Strategy) -> bool:
        return self.params.mode != "freeze_a" and strategy.offers_changes

    def extra_values(self, base: Base) -> int:
        if self.params.mode == "average":
            return READINGS
        found = self.matrices(base)
        size = self._sketched()
        return READINGS + sum(m.count * size * (2 * m.inputs + m.outputs) for m in found)

    def _sketched(self) -> int:
        """The rank of what is found again: each device's part has the adapter's."""
        return int(self.params.exact_devices * self.params.rank)

    def attach(self, model: Module, base: Base, seed: int) -> None:
        """PEFT passes over what it does not find; here all that `base` promises has to be there."""
        import torch
        from peft import LoraConfig, inject_adapter_in_model

        from trainer.adapters._factors import gaussian

        names = {matrix.name for matrix in self.matrices(base)}
        config = LoraConfig(
            r=self.params.rank,
            lora_alpha=self.params.alpha,  # type: ignore[arg-type]
            target_modules=[
                path
                for path, module in model.named_modules()
                if bases.matrix_name(path) in names and hasattr(module, "weight")
            ],
        )
        with warnings.catch_warnings():  # it says that it turns GPT-2's matrices, as it should
            warnings.filterwarnings("ignore", "fan_in_fan_out", UserWarning)
            inject_adapter_in_model(config, model)
        trained = 0
        for path, param in model.named_parameters():
            if not param.requires_grad:
                continue
            first = torch.zeros(param.shape)
            if path.endswith(A):
                first = gaussian(seed, path.removesuffix(A), *param.shape) / param.shape[1] ** 0.5
                param.requires_grad = self.params.mode != "freeze_a"
            param.data = first.to(param.device)
            trained += param.numel() * param.requires_grad
        if trained != self.parameter_count(base):
            raise ValueError(
                f"{trained} values can be adapted in this base, where its description has "
                f"{self.parameter_count(base)}: describe it anew"
            )

    def kept(self, model: Module) -> dict[str, Tensor]:
        found = dict(model.named_parameters()).items()
        return {n: p.detach() for n, p in found if n.endswith(A) and not p.requires_grad}

    def extras(self, trained: base.Trained) -> list[Tensor]:
        from trainer.adapters._factors import readings, sketches

        now, before, seed = _pairs(trained.now), _pairs(trained.anchor), trained.seed
        found = [(readings(seed, now) - readings(seed, before)).float()]
        if self.params.mode == "exact":
            for name in now:
                change = _change(now[name], before[name])
                found += sketches(seed, name, change, self._sketched())
        return found

    def settle(self, trained: base.Trained, mean: Sequence[Tensor]) -> float | None:
        """Of the averages one by one and of what the sketches make of them, the nearer ones."""
        from trainer.adapters._factors import distance, refactored

        now, before, seed = _pairs(trained.now), _pairs(trained.anchor), trained.seed
        wanted, *sketched = mean
        missed = distance(seed, _pairs(trained.averaged), before, wanted)
        if sketched:
            better = {
                name: refactored(seed, name, now[name], _change(now[name], before[name]), *parts)
                for name, *parts in zip(now, sketched[::2], sketched[1::2], strict=True)
            }
            if (nearer := distance(seed, better, before, wanted)) < missed:
                missed = nearer
                for name, pair in better.items():
                    for old, new in zip(now[name], pair, strict=True):
                        old.copy_(new)
        return missed

    def peft_config(self, base: Base, paths: Sequence[str]) -> dict[str, Any]:
        return {
            "peft_type": "LORA",
            "r": self.params.rank,
            "lora_alpha": self.params.alpha,
            "target_modules": list(paths),
            "lora_dropout": 0.0,
            "bias": "none",
            "inference_mode": True,
        }


def _pairs(params: Mapping[str, Tensor]) -> dict[str, Factors]:
    """By the module that they are beside."""
    from trainer.adapters._factors import Factors

    modules = [name.removesuffix(A) for name in params if name.endswith(A)]
    return {module: Factors(params[module + A], params[module + B]) for module in modules}


def _change(now: Factors, before: Factors) -> Factors:
    return type(now)(now.a - before.a, now.b - before.b)


PLUGIN = Lora
