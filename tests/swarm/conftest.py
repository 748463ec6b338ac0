from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.swarm.swarm import Swarm


@pytest.fixture
def swarm(tmp_path: Path) -> Iterator[Swarm]:
    """Rounds of a few seconds with two peers."""
    made = Swarm(tmp_path)
    yield made
    made.close()
