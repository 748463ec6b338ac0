"""What a volunteer really does: installs the whole lock, is revoked, starts a new launcher."""

from __future__ import annotations

import pytest

from tests.swarm.site import Site
from tests.waiting import wait_for

INSTALL_S = 1800
REVOKE = """
from webapp.devices.models import Device
from webapp.devices.services import revoke
device = Device.objects.get(name="anna")
revoke(device, by=device.owner, reason="Revoked by its owner")
"""
CREDITED = """
select count(*) from credit_receipt r join devices_session s on r.session_id = s.id
join devices_device d on s.device_id = d.id
where d.name = 'anna' and d.revoked_at is null and r.accepted and r.samples > 0
"""


@pytest.mark.swarm
@pytest.mark.soak
def test_a_volunteer_installs_the_real_lock_trains_is_revoked_and_comes_back(tmp_path):
    site = Site(tmp_path / "site")
    site.folder.mkdir()
    site.start("--no-volunteer")
    try:
        agent = site.agent("anna", installs=True)

        def installed():
            assert agent.poll() is None, site.said("anna")
            return "The environment is ready" in site.said("anna")

        wait_for("environment", installed, INSTALL_S)
        wait_for("credited work", lambda: site.rows(CREDITED)[0][0], 300)
        site.manage("shell", "-c", REVOKE)
        assert agent.wait(60) == 1
        said = site.said("anna")
        print(said)
        assert "This device was revoked: Revoked by its owner" in said
        assert "cannot be reached" not in said
        assert "next start" not in said

        site.agent("anna", installs=True)
        wait_for("credited work", lambda: site.rows(CREDITED)[0][0], 300)
        print(site.said("anna"))
        assert "Making a private" not in site.said("anna")
        assert len(list(site.folder.glob("anna/former/*/demo/spool"))) == 1
    finally:
        site.end()
