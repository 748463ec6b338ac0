"""What a device may ask of the site with its token: am I still taken, can you dial me?"""

from __future__ import annotations

import json
import socket
import threading

from tests.factories import make_device
from trainer.recipe import Recipe
from webapp.accounts.services import delete_account
from webapp.devices.services import revoke


def dial(client, body, token=None):
    return client.post(
        "/api/v1/device/dialback",
        json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"} if token else {},
    )


def test_the_site_dials_a_device_back_and_believes_only_its_word(client, alice):
    _, token = make_device(alice)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        words = iter(("a" * 32, "b" * 32))

        def answer():
            for word in words:
                with listener.accept()[0] as caller:
                    caller.sendall(word.encode())

        threading.Thread(target=answer, daemon=True).start()
        body = {"port": port, "word": "a" * 32}
        assert dial(client, body, token).json()["reachable"] is True
        other = dial(client, body, token).json()
        assert (other["reachable"], "something else" in other["reason"]) == (False, True)
    closed = dial(client, body, token).json()
    assert closed == {
        "reachable": False,
        "address": "127.0.0.1",
        "reason": f"port {port} of 127.0.0.1 did not answer: Connection refused",
    }
    assert dial(client, {**body, "port": 22}, token).status_code == 422
    assert dial(client, body).status_code == 401


def ask_again(client, token, code=""):
    return client.post(
        "/api/v1/device/again",
        json.dumps({"code": code}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )


def test_a_device_may_ask_whether_it_is_still_taken(client, alice):
    device, token = make_device(alice)
    assert ask_again(client, token).json() == {"device": device.pk.hex, "name": device.name}
    assert ask_again(client, "nonsense").status_code == 401
    revoke(device, by=alice)
    refused = ask_again(client, token)
    assert (refused.status_code, refused.json()["kind"]) == (403, "revoked")


def test_a_device_whose_account_was_deleted_is_told_so_and_what_to_do(client, alice):
    _, token = make_device(alice)
    delete_account(alice)
    refused = ask_again(client, token)
    assert refused.status_code == 401
    assert "the account it belonged to, was deleted" in refused.json()["error"]
    assert "press Join and start the new launcher" in refused.json()["next_step"]


def test_a_device_reads_the_recipe_before_it_joins_and_a_stranger_does_not(
    client, alice, olga, collaboration
):
    device, token = make_device(alice)
    path = "/api/v1/device/collaborations/demo/recipe"
    bearer = {"Authorization": f"Bearer {token}"}
    answer = client.get(path, headers=bearer)
    assert Recipe.model_validate_json(answer.content) == collaboration.recipe
    assert client.get(path).status_code == 401
    revoke(device, by=olga, reason="lost")
    assert client.get(path, headers=bearer).status_code == 403
