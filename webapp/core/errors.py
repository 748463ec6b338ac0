"""The only exception whose text reaches a person."""

from __future__ import annotations


class UserError(Exception):
    """What happened and what it means; `next_step` says what to do.

    `kind` is a short word for programs: `unknown`, `used`, `expired`, `forbidden`, `revoked`,
    `banned`, `update`, `wait`, `conflict`. Empty: the act does not fit the present state.
    """

    def __init__(self, message: str, next_step: str = "", *, kind: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.kind = kind

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()
