from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.swarm.site import Site
from tests.swarm.swarm import Swarm


@pytest.fixture
def swarm(tmp_path: Path) -> Iterator[Swarm]:
    """Rounds of a second or two with two peers."""
    made = Swarm(tmp_path, pause_s=0.02, target_samples=600)
    yield made
    made.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One running site for all of `test_site_*.py`, which go from gentle to rough."""
    made = Site(tmp_path_factory.mktemp("site"))
    made.start()
    yield made
    made.end()
