from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.swarm.swarm import Swarm


@pytest.fixture
def swarm(tmp_path: Path) -> Iterator[Swarm]:
    """Rounds of a second or two with two peers."""
    made = Swarm(tmp_path, pause_s=0.02, target_samples=600)
    yield made
    made.close()
