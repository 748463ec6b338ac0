"""Every answer of the API is one that its own description allows."""

from __future__ import annotations

import pytest
import schemathesis
from django.core.cache import cache
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.factories import make_device
from webapp.collaborations.services import note_swarm

SCHEMA = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]


@pytest.mark.django_db(transaction=True)  # each request closes its connection
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.label)
def test_the_api_keeps_to_its_description(operation, alice, collaboration):
    note_swarm(collaboration, addresses=("/ip4/127.0.0.1/tcp/1/p2p/Qm",))
    _, token = make_device(alice)

    @given(case=operation.as_strategy())
    @settings(
        max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    def ask(case):
        cache.clear()
        if "slug" in (case.path_parameters or {}):
            case.path_parameters["slug"] = "demo"  # a made-up one never gets past "not found"
        # A well-formed request may still not fit: an old version, a start after its end.
        case.call_and_validate(
            headers={"Authorization": f"Bearer {token}"},
            excluded_checks=[positive_data_acceptance],
        )

    ask()


def test_a_slug_out_of_bounds_is_named(client, db):
    answer = client.get("/api/v1/collaborations/NOT%20A%20SLUG")
    assert answer.status_code == 422
    assert "slug" in answer.json()["error"]
