"""The fields that messages and recipes are made of: names, counts and figures with their bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
SessionId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=10**15)]
Seconds = Annotated[float, Field(ge=0, le=10**9)]
Share = Annotated[float, Field(ge=0, le=1)]
Length = Annotated[float, Field(ge=0)]  # L2, of a vector
Line = Annotated[str, Field(max_length=300)]
Name = Annotated[str, Field(max_length=12)]  # the end of a peer id
