"""The newest revocation list this device has seen, in a file that its processes share.

The main process and the DHT's take new lists; the averager's, which shares no memory with them,
sees them by the file. It outlives a restart, so that an old list cannot come back.
"""

from __future__ import annotations

import logging
from pathlib import Path

from trainer.passport import RevocationList, read_revocations

FILENAME = "revoked.json"
log = logging.getLogger(__name__)


class Revoked:
    """`device in revoked`: by the newest list. `number` is its number, 0 without one."""

    def __init__(self, path: Path, authority: str) -> None:
        self._path, self._authority = path, authority
        self._version = (0, 0)
        self._number, self._devices = 0, frozenset[str]()

    @property
    def number(self) -> int:
        self._read()
        return self._number

    def __contains__(self, device: str) -> bool:
        self._read()
        return device in self._devices

    def signed(self) -> RevocationList | None:
        """The newest list as the site signed it; None without one."""
        try:
            return RevocationList.model_validate_json(self._path.read_text())
        except (OSError, ValueError):
            return None

    def take(self, signed: RevocationList) -> bool:
        """Keeps a newer list; False when it is not newer. Raises ValueError when it is forged."""
        found = read_revocations(signed, authority=self._authority)
        if found.number <= self.number:
            return False
        draft = self._path.with_suffix(".new")
        draft.write_text(signed.model_dump_json())
        draft.replace(self._path)
        log.info("revocation list %d names %d devices", found.number, len(found.devices))
        return True

    def _read(self) -> None:
        """Reads the file when it has changed; a damaged one leaves what was known."""
        try:
            found_at = self._path.stat()
        except OSError:
            return
        version = (found_at.st_mtime_ns, found_at.st_ino)
        if version == self._version:
            return
        self._version = version
        signed = self.signed()
        try:
            found = read_revocations(signed, authority=self._authority) if signed else None
        except ValueError as error:
            log.warning("%s is not used: %s", self._path, error)
            return
        if found is not None and found.number > self._number:
            self._number, self._devices = found.number, frozenset(found.devices)
