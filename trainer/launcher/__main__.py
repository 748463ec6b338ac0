# No "from __future__ import annotations" and no new syntax here: an old Python must be able to
# read this file far enough to say what it lacks.
"""Start of the launcher: `python3 potluck.pyz`."""

import sys

if sys.version_info < (3, 9):  # noqa: UP036
    sys.exit(
        "Python 3.9 or newer is needed to start Potluck. Install a newer Python 3 and try again."
    )

from trainer.launcher.start import main

if __name__ == "__main__":
    sys.exit(main())
