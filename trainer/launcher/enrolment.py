"""Which device this computer is: the one it enrolled as, or a new one by the launcher's code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.launcher import web
from trainer.launcher.machine import facts
from trainer.launcher.place import (
    make_folder,
    put_aside,
    site_folder,
    store_device,
    stored_device,
)

QUICK_S = 3.0


def enrolled(home: Path, site: str, config: dict[str, Any], agreed: Callable[[], bool]) -> bool:
    """Whether there is a device to run as; False: the person did not agree to a new one.

    A device that the site no longer takes gives way to the launcher's code, unless it came with
    that very code. Raises Unusable, web.Unreachable or web.Refusal.
    """
    stored = stored_device(home, site)
    if stored and (_is_of(stored, config) or _is_taken(stored, site, config)):
        return True
    if not agreed():
        return False
    make_folder(site_folder(home, site))  # proven first: a code works once
    body = {"code": str(config.get("code", "")), "machine": facts()}
    device = json.loads(web.call(f"{site}/api/v1/device/enrol", body=body))
    if stored:
        put_aside(home, site, stored)
    store_device(home, site, device | {"code_sha256": _hash_of(config)})
    print(f'Enrolled at {site} as "{device.get("name", "")}".', flush=True)
    return True


def _hash_of(config: dict[str, Any]) -> str:
    return hashlib.sha256(str(config.get("code", "")).encode()).hexdigest()


def _is_of(stored: dict[str, Any], config: dict[str, Any]) -> bool:
    """Whether the device was enrolled with this launcher: a usual start, the site is not asked."""
    return stored.get("code_sha256") == _hash_of(config)


def _is_taken(stored: dict[str, Any], site: str, config: dict[str, Any]) -> bool:
    """Whether the site still takes the device, said in words either way.

    The site hears this launcher's code, so that the Join page it came from can say the same. A
    site that cannot tell now keeps the device as it is.
    """
    name = str(stored.get("name", ""))
    try:
        body = {"code": str(config.get("code", ""))}
        url = f"{site}/api/v1/device/again"
        web.call(url, token=stored["token"], body=body, timeout_s=QUICK_S)
    except web.Unreachable:
        return True
    except web.Refusal as refusal:
        if refusal.status != 401 and refusal.kind != "revoked":
            return True
        print(f'The device "{name}" of this computer is gone: {refusal.message}', flush=True)
        return False
    print(
        f'This computer is enrolled already as "{name}" and goes on as that device; the code of '
        "this launcher stays unused. For a device of its own, start it with another --home.",
        flush=True,
    )
    return True
