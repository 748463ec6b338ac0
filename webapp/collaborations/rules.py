"""What a strategy does, as people read it: its formula, and where that was published."""

from __future__ import annotations

from dataclasses import dataclass

from trainer import catalogue


@dataclass(frozen=True)
class Rule:
    """`formula` is plain text, a line for each part, in `symbols` and its own."""

    label: str
    summary: str
    formula: str
    symbols: str
    source: str
    address: str


def rule_of(strategy: str) -> Rule | None:
    """None where this site has no such strategy."""
    plugin = catalogue.plugins("strategies").get(strategy)
    if plugin is None:
        return None
    return Rule(
        label=plugin.label,
        summary=plugin.summary,
        formula=plugin.formula,
        symbols=plugin.symbols,
        source=plugin.source.words,
        address=plugin.source.address,
    )
