"""A site that gives out launchers, and somebody who starts one."""

from __future__ import annotations

import ensurepip
from pathlib import Path

import pytest

from tests.trainer import tiny_bases
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


@pytest.fixture(scope="session")
def base_of(tmp_path_factory):
    """The folder of a tiny base of a make; each is made once."""
    made = {}

    def find(make="llama"):
        if make not in made:
            made[make] = tiny_bases.make_base(tmp_path_factory.mktemp(make), make)
        return made[make]

    return find
