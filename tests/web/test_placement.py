"""Which collaboration a device gets whose owner did not pick one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.at_once import at_once
from tests.factories import (
    make_collaboration,
    make_device,
    make_file,
    make_session,
    make_user,
)
from trainer.recipe import Base, Choice, Text
from trainer.wire import LeaveCause, Machine, Role
from webapp.collaborations.models import Collaboration, State
from webapp.collaborations.placement import NOTHING_OPEN, ON_ITS_WAY, place
from webapp.devices.services import close_session, make_code

LARGE = Choice(name="albert", params={"hidden": 8192, "heads": 64})
MACHINE = Machine(memory_bytes=8 * 10**9)
pytestmark = pytest.mark.django_db


@pytest.fixture
def artifacts(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


def device(name="lab-pc"):
    return make_device(make_user(), name)[0]


def busy(slug, devices, **fields):
    """A collaboration with so many devices at work."""
    made = make_collaboration(slug, **fields)
    for _ in range(devices):
        make_session(device(), made)
    return made


def placed(one, machine=MACHINE, later=timedelta()):
    return place(one, machine, now=timezone.now() + later)


def test_it_gets_where_the_fewest_devices_are_at_work_and_is_told_so():
    busy("two", 2)
    one = busy("one", 1)
    make_session(device(), one, role=Role.COORDINATOR)  # is no help
    ended = make_session(device(), one)
    close_session(ended, cause=LeaveCause.STOPPED)
    found = placed(device())
    assert found.collaboration == one
    assert found.reason == (
        "Of 2 open collaborations that fit this device, this one needs it most: "
        "only one device is at work there."
    )


def test_it_stays_while_that_goes_on_and_moves_when_it_pauses_or_ends():
    first, second = busy("first", 0), busy("second", 1)
    one = device()
    assert placed(one).collaboration == first
    for _ in range(3):
        make_session(device(), first)
    assert placed(one).collaboration == first
    for state in (State.PAUSED, State.FINISHED, State.FAILED):
        Collaboration.objects.filter(pk=first.pk).update(state=state)
        assert placed(one).collaboration == second
        Collaboration.objects.filter(pk=first.pk).update(state=State.OPEN)
        one.placed_in = first
        one.save()


@pytest.mark.django_db(transaction=True)
def test_devices_that_ask_at_the_same_time_are_spread():
    for slug in ("a", "b", "c"):
        make_collaboration(slug)
    devices = [device() for _ in range(6)]
    found = at_once(*[lambda one=one: placed(one).collaboration.slug for one in devices])
    assert sorted(found) == ["a", "a", "b", "b", "c", "c"]


def test_one_that_was_placed_and_never_came_counts_no_more():
    make_collaboration("a")
    make_collaboration("b")
    assert placed(device()).collaboration.slug == "a"
    assert placed(device()).collaboration.slug == "b"
    assert placed(device(), later=2 * ON_ITS_WAY).collaboration.slug == "a"


def test_only_what_fits_and_needs_nobodys_own_texts():
    make_collaboration("large", family=LARGE)
    make_collaboration("notes", texts=(Text(kind="private"),))
    none = placed(device())
    assert none.collaboration is None
    assert "Large does not fit, because it needs" in none.reason
    assert "Notes trains on texts of volunteers' own" in none.reason
    assert none.reason.endswith("only their owners can choose.")  # a sentence follows
    busy("small", 5)
    found = placed(device())
    assert found.collaboration.slug == "small"
    assert found.reason == "It is the only open collaboration that fits this device."


def tuned(slug, devices, adapter, **changes):
    """A collaboration that trains a part of a model of 480 M parameters."""
    layers = 24
    files = (make_file(b"{}", "config.json"), make_file(b"weights", "model.safetensors"))
    matrix = {"name": "q_proj", "count": layers, "inputs": 4000, "outputs": 5000}
    stack = {"place": "model.layers", "layers": [20_000_000] * layers}
    size = {"parameters": 480_000_000, "matrices": (matrix,), "stack": stack}
    return busy(
        slug,
        devices,
        family=Choice(name="pretrained_causal"),
        base=Base(kind="site", files=files, **size),
        adapter=adapter,
        **changes,
    )


SMALL = Choice(name="causal", params={"hidden": 128, "layers": 3, "heads": 4, "length": 128})
LORA = Choice(name="lora", params={"rank": 8})
TOP = Choice(name="top_layers", params={"layers": 1})


def test_a_device_too_small_for_all_of_a_model_gets_lora_before_the_top_layers(artifacts):
    busy("large", 0, family=LARGE)
    tuned("top", 0, TOP)
    tuned("lora", 3, LORA)
    small = placed(device(), Machine(memory_bytes=6 * 10**9))
    assert small.collaboration.slug == "lora"
    assert small.reason == (
        "Of 2 open collaborations that fit this device, this one suits it best. "
        "It trains a LoRA adapter beside a trained model."
    )
    large = placed(device(), Machine(memory_bytes=10**12))
    assert large.collaboration.slug in ("large", "top")  # for whom only need counts
    assert "this one needs it most: no device is at work there." in large.reason


def test_what_is_held_comes_before_what_is_read_from_disk_as_it_is_needed(artifacts):
    tuned("lora", 0, LORA)
    machine = Machine(memory_bytes=int(1.6e9))
    streams = placed(device(), machine)
    assert streams.reason == (
        "It is the only open collaboration that fits this device. It trains a LoRA adapter beside "
        "a trained model, with its frozen layers read from disk each time that they are needed."
    )
    busy("little", 9)
    assert placed(device(), machine).collaboration.slug == "little"
    none = placed(device(), Machine(memory_bytes=int(0.5e9)))
    assert none.collaboration is None and "does not fit, because it needs" in none.reason


def test_a_device_that_can_train_nothing_measures_and_does_not_count_as_help(artifacts):
    held_out = Text(kind="site", file=make_file(b"held out\n", "held-out.txt"))
    crowded = busy("crowded", 3, held_out=held_out, family=SMALL)
    machine = Machine(memory_bytes=int(0.8e9))
    one = device()
    found = placed(one, machine)
    assert found.collaboration == crowded
    assert found.reason.endswith(
        "It trains nothing there, but measures the model with parts of the held-out text."
    )
    make_session(device(), make_collaboration("quiet"), role=Role.EVALUATOR)
    reason = placed(device()).reason
    assert "this one needs it most: no device is at work there." in reason


def test_the_join_page_says_how_ones_devices_take_part(client, alice, artifacts):
    one, _ = make_device(alice)
    tuned("lora", 0, LORA)
    one.machine = {"memory_bytes": int(1.6e9), "accelerator": "CPU"}
    one.save()
    client.force_login(alice)
    page = client.get("/c/lora/join/").text
    assert "What trains is a LoRA adapter beside a trained model" in page
    assert "fits: needs" in page
    assert "with its frozen layers read from disk each time that they are needed" in page


def test_nothing_open_is_said():
    for state in (State.DRAFT, State.PAUSED, State.FINISHED):
        make_collaboration(state=state)
    found = placed(device())
    assert (found.collaboration, found.reason) == (None, NOTHING_OPEN)


def test_the_call_answers_with_the_place_and_keeps_what_the_machine_is_now(client):
    make_collaboration("demo")
    one, token = make_device(make_user())
    body = {"machine": {"memory_bytes": 4 * 10**9}}
    answer = client.post(
        "/api/v1/device/placement",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.json() == {
        "collaboration": "demo",
        "title": "Demo",
        "reason": "It is the only open collaboration that fits this device.",
    }
    one.refresh_from_db()
    assert one.machine["memory_bytes"] == 4 * 10**9


def test_a_launcher_without_a_collaboration_is_made_and_enrols_such_a_device(client, alice):
    client.force_login(alice)
    page = client.post("/join/", {"device_name": "pc", "once": "o"})
    assert "Lend a computer to whoever needs it" in page.text
    code = make_code(alice, collaboration=None, device_name="pc", once="o")  # the same one
    for shape in ("linux", "macos", "pyz"):
        download = client.post(f"/join/{shape}/", {"ticket": page.context["ticket"]})
        assert download.status_code == 200 and download.content
    assert "wherever it is needed" in client.get("/me/devices/").text
    enrolled = client.post(
        "/api/v1/device/enrol", {"code": code}, content_type="application/json"
    ).json()
    assert enrolled["collaboration"] == "" and enrolled["name"] == "pc"


def test_my_devices_tell_where_the_site_put_one_and_why(client, alice):
    one, _ = make_device(alice)
    make_collaboration("late")
    where = placed(one).collaboration
    client.force_login(alice)
    assert "The site gave it" not in client.get("/me/devices/").text  # it is not there
    make_session(one, where)
    shown = client.get("/me/devices/").text
    assert f"The site gave it {where.title}" in shown
    assert "It is the only open collaboration that fits this device." in shown
