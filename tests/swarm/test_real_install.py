"""What a volunteer's first start really does: the whole lock, out of the configured index."""

from __future__ import annotations

import pytest

from tests.swarm.site import Site
from tests.swarm.swarm import wait_for

INSTALL_S = 1800


@pytest.mark.swarm
@pytest.mark.soak
def test_a_volunteer_without_anything_installs_the_real_lock_and_trains(tmp_path):
    site = Site(tmp_path / "site")
    site.folder.mkdir()
    site.start("--no-volunteer")
    try:
        agent = site.agent("anna", installs=True)

        def installed():
            assert agent.poll() is None, site.said("anna")
            return "The environment is ready" in site.said("anna")

        wait_for("environment", installed, INSTALL_S)
        query = "select 1 from credit_receipt where accepted and samples > 0"
        wait_for("credited work", lambda: site.rows(query), 300)
    finally:
        site.end()
    assert list(site.folder.glob("anna/envs/*/.complete")), site.said("anna")
