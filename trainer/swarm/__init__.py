"""Peers among themselves: hivemind, what it leaves open, and our averager."""

import os

os.environ.setdefault("HIVEMIND_LOGLEVEL", "CRITICAL")  # read at import; our verdicts say it
