"""Finds plug-ins: every module in a folder that defines PLUGIN is offered under its file name."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any

from trainer.recipe import Choice, Recipe

FOLDERS = ("families", "adapters", "strategies")


@cache
def plugins(folder: str) -> dict[str, Any]:
    """{file name: plug-in class} of `trainer/<folder>/`; importing one never loads torch."""
    package = importlib.import_module(f"trainer.{folder}")
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        if info.name != "base" and not info.name.startswith("_"):
            found[info.name] = importlib.import_module(f"{package.__name__}.{info.name}").PLUGIN
    return found


def choices(folder: str) -> list[tuple[str, str]]:
    return [(name, plugin.label) for name, plugin in plugins(folder).items()]


def create(folder: str, choice: Choice) -> Any:
    """The plug-in with its checked parameters. ValueError on an unknown name or value."""
    known = plugins(folder)
    if choice.name not in known:
        raise ValueError(f"{choice.name!r} is not in {folder}: choose one of {', '.join(known)}")
    plugin = known[choice.name]
    return plugin(plugin.Params(**choice.params))


def family_of(recipe: Recipe) -> Any:
    """The recipe's family, which knows its base. ValueError as `create`."""
    family = create("families", recipe.family)
    family.base = recipe.base
    if (adapter := adapter_of(recipe)) is not None:
        family.reached = adapter.reached(recipe.base)
    return family


def adapter_of(recipe: Recipe) -> Any:
    """None where it has none. ValueError as `create`."""
    return create("adapters", recipe.adapter) if recipe.adapter is not None else None


def trained_parameters(recipe: Recipe) -> int:
    """The number of values that train, are averaged, stored and downloaded. ValueError as `create`,
    and where the adapter does not fit the base.
    """
    if (adapter := adapter_of(recipe)) is not None:
        return int(adapter.parameter_count(recipe.base))
    return int(family_of(recipe).parameter_count(recipe.tokenizer.vocab_size))


def offered_values(recipe: Recipe) -> int:
    """The number of values of an offer. ValueError as `trained_parameters`."""
    strategy = create("strategies", recipe.strategy)
    values = int(strategy.vectors * trained_parameters(recipe))
    if (adapter := adapter_of(recipe)) is not None:
        values += adapter.extra_values(recipe.base) if adapter.adds_to(strategy) else 0
    return values


def check(recipe: Recipe) -> None:
    """Raises ValueError when a plug-in or a parameter does not exist or is out of range."""
    family = create("families", recipe.family)
    if family.is_pretrained != (recipe.base is not None):
        needs = (
            "begins with a base: name one, or choose another family"
            if family.is_pretrained
            else "begins with no base: leave it out, or choose a family that begins with one"
        )
        raise ValueError(f"{recipe.family.name} {needs}")
    trained_parameters(recipe)
    strategy = create("strategies", recipe.strategy)
    if (adapter := adapter_of(recipe)) is not None:
        adapter.check(strategy)
    if strategy.local and recipe.micro_batch is None:
        raise ValueError(
            f"{recipe.strategy.name} takes a step after each micro-batch, so its size is part of "
            "what is learned: give micro_batch a number, for example 8"
        )
    if strategy.most_passes and not recipe.is_private:
        raise ValueError(
            "most_passes are over each volunteer's own texts, and this recipe trains on none: set "
            "it to 0, and most_local_steps or most_training_s instead"
        )
    _check_participation(recipe, strategy)


def _check_participation(recipe: Recipe, strategy: Any) -> None:
    """Raises ValueError when a rule of the recipe cannot hold with this strategy."""
    rules = recipe.participation
    if rules.late_rounds and not strategy.takes_late:
        raise ValueError(
            f"{recipe.strategy.name} has no use for results of earlier rounds: set late_rounds to 0"
        )
    if strategy.uncapped and rules.most_share < 1:
        raise ValueError(
            f"{strategy.uncapped}, so most_share must be 1: to give all the same say, set weigh_by "
            "to equal"
        )
    is_limited = strategy.most_steps or strategy.most_s or strategy.most_passes
    if rules.done_share < 1 and not is_limited:
        raise ValueError(
            f"done_share ({rules.done_share:g}) is of devices that are done with a round, and "
            "without a limit none ever is: set most_local_steps, most_training_s or most_passes, "
            "or done_share to 1"
        )
