"""Figures in words for the person at the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.wire import Progress

if TYPE_CHECKING:
    from trainer.engine.own_check import OwnLosses


def own_words(losses: OwnLosses) -> str:
    """What a round did for the owner's held-out texts: is it worth it, and is sharing?"""
    said = f"loss {losses.after:.3f} after round {losses.round}, {losses.before:.3f} before"
    if losses.alone is None:
        return said
    better = "sharing helped" if losses.after < losses.alone else "alone it was no worse"
    return f"{said}, {losses.alone:.3f} with what this device learned alone: {better}"


def link_words(progress: Progress) -> str:
    """Speed of the link, and what it carries for all; empty while neither is known."""
    known = []
    if progress.link_mbit_s is not None:
        known.append(f"{progress.link_mbit_s:,.3g} Mbit/s measured")
    if progress.share is not None:
        share = f"{progress.share:.0%} of the averaging" if progress.share else "no averaging"
        known.append(f"carries {share} for all")
    return ", ".join(known)
