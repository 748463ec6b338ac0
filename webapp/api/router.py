"""The HTTP API, version 1."""

from __future__ import annotations

from ninja import NinjaAPI

from webapp.api.device import router as device
from webapp.api.gates import BoundedParser
from webapp.api.problems import handle_problems
from webapp.api.public import router as public

api = NinjaAPI(
    title="Potluck",
    version="1",
    description="What agents and other programs ask the site over HTTP.",
    docs_url=None,  # the bundled page loads its scripts from another host
    parser=BoundedParser(),
)
handle_problems(api)
api.add_router("/device", device)
api.add_router("", public)
