"""A site that gives out launchers, and somebody who starts one."""

from __future__ import annotations

import ensurepip
from pathlib import Path

import pytest

from tests.trainer.launcher_site import LauncherSite
from tests.trainer.volunteer import CODE, NEW_CODE, Volunteer


@pytest.fixture
def launcher_site():
    (pip,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    site = LauncherSite(pip.read_bytes(), pip.name)
    site.codes = {CODE: "good", NEW_CODE: "good"}
    site.start()
    yield site
    site.stop()


@pytest.fixture
def volunteer(tmp_path, launcher_site):
    return Volunteer(tmp_path / "me", launcher_site)
