"""What the site is told of an error: nothing that may quote a volunteer's own texts."""

from __future__ import annotations

from trainer.recipe import Recipe


def told(error: Exception, recipe: Recipe) -> str:
    """The error in words; where texts are private, its kind alone, for it may name or quote them.

    The log on the device has all of it, with the names of files: that is its owner's.
    """
    if recipe.is_private:
        return f"{type(error).__name__}; the log on the device says more"
    return str(error)
