"""Texts and labelled data out of installed packages: no download, no data in the repository.

A file here that defines `corpus` offers a text under its file name (with - for _), and each of its
`LABELLED` is offered under its own.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from types import ModuleType

from webapp.recipes.corpora.base import Corpus, Example

Labelled = Callable[[], list[Example]]


@cache
def _modules() -> dict[str, ModuleType]:
    found = (info.name for info in pkgutil.iter_modules(__path__) if info.name != "base")
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}") for name in found}


def texts() -> dict[str, Callable[[], Corpus]]:
    return {name: module.corpus for name, module in _modules().items()}


def labelled() -> dict[str, Labelled]:
    return {name: read for module in _modules().values() for name, read in module.LABELLED.items()}
