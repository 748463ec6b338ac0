"""The people and things most tests are about."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright keeps a loop running
os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch's threads would wait for each other


@pytest.fixture
def alice(db):
    """A volunteer."""
    from tests.factories import make_user

    return make_user("alice")


@pytest.fixture
def olga(db):
    """An organiser."""
    from tests.factories import make_user

    return make_user("olga", is_staff=True)


@pytest.fixture
def mallory(db):
    """A volunteer who was banned."""
    from tests.factories import make_user

    return make_user("mallory", ban_reason="sent made-up samples")


@pytest.fixture
def collaboration(olga):
    from tests.factories import make_collaboration

    return make_collaboration("demo", organiser=olga)


@pytest.fixture
def device(alice):
    from tests.factories import make_device

    return make_device(alice)[0]
