"""The local demo volunteer: a person like any other, who lends this machine once or several times.

It goes the public way: a one-time code, the launcher that everybody downloads, enrolment over HTTP.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from django.conf import settings

from trainer.launcher.place import Unusable, stored_device
from webapp.accounts.models import User
from webapp.collaborations.models import Collaboration
from webapp.devices.models import Device
from webapp.devices.services import make_code
from webapp.launcher.builder import PYZ, personal_pyz

EMAIL = "demo-volunteer@localhost"
NAME = "demo volunteer"
DEVICE = "this machine"


def home(number: int = 1) -> Path:
    """Of the so-manyth device."""
    return settings.DATA_DIR / ("volunteer" if number == 1 else f"volunteer-{number}")


def prepare(collaboration: Collaboration, number: int = 1) -> Path:
    """The launcher to run. A new code is put into it only when it has no device yet for this
    collaboration."""
    launcher = home(number) / PYZ
    user = User.objects.filter(email=EMAIL).first() or _make_user()
    name = DEVICE if number == 1 else f"{DEVICE}, {number}"
    is_known = Device.objects.filter(owner=user, name=name).exists()
    if launcher.exists() and is_known and _is_enrolled(home(number), collaboration):
        return launcher
    config = {
        "site": settings.SITE_URL,
        "code": make_code(user, collaboration=collaboration, device_name=name),
        "collaboration": collaboration.slug,
        "device_name": name,
    }
    _forget_device(home(number))
    launcher.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    launcher.unlink(missing_ok=True)
    launcher.touch(mode=0o600)
    launcher.write_bytes(personal_pyz(config))
    return launcher


def environment(home: Path) -> dict[str, str]:
    """One thread, a folder of its own, and this environment instead of a second installation."""
    return {
        "POTLUCK_HOME": str(home),
        "POTLUCK_ENV": sys.prefix,
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }


def _make_user() -> User:
    """Nobody logs in as it: it has no password and no verified address."""
    return User.objects.create_user(EMAIL, None, name=NAME)


def _is_enrolled(home: Path, collaboration: Collaboration) -> bool:
    try:
        device = stored_device(home, settings.SITE_URL)
    except Unusable:
        return False
    return device is not None and device.get("collaboration") == collaboration.slug


def _forget_device(home: Path) -> None:
    for file in home.glob("sites/*/device.json"):
        file.unlink()
