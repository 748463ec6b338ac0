"""Files by their hash, checkpoints, and what a launcher downloads."""

from __future__ import annotations

import hashlib
import json
import zipfile
from io import BytesIO

import pytest

from trainer.wire import CheckpointWritten
from webapp.artifacts.models import Artifact
from webapp.artifacts.selectors import newest_checkpoint
from webapp.artifacts.services import register_checkpoint, register_file
from webapp.core.errors import UserError
from webapp.devices.services import make_code

CONTENT = bytes(range(256)) * 4000


@pytest.fixture(autouse=True)
def folder(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


@pytest.fixture
def artifact(db, tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_bytes(CONTENT)
    return register_file(path, "text", title="Text")


async def get(async_client, artifact, **headers):
    names = {key.replace("_", "-"): value for key, value in headers.items()}
    url = f"/artifacts/{artifact.sha256}/{artifact.filename}"
    answer = await async_client.get(url, headers=names)
    body = b""
    if answer.streaming:
        body = b"".join([piece async for piece in answer.streaming_content])
    return answer, body


@pytest.mark.django_db(transaction=True)
async def test_a_file_comes_whole_with_its_hash_as_label(async_client, artifact):
    answer, body = await get(async_client, artifact)
    assert answer.status_code == 200
    assert hashlib.sha256(body).hexdigest() == artifact.sha256
    assert answer["ETag"] == f'"{artifact.sha256}"'
    assert answer["Content-Length"] == str(len(CONTENT))
    assert answer["Content-Type"] == "application/octet-stream"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=500000-", 500_000, len(CONTENT)),
        ("bytes=-7", len(CONTENT) - 7, len(CONTENT)),
        ("bytes=1000000-99999999", 1_000_000, len(CONTENT)),
    ],
)
async def test_a_part_is_sent_where_one_is_asked_for(async_client, artifact, asked, start, end):
    answer, body = await get(async_client, artifact, Range=asked)
    assert answer.status_code == 206
    assert body == CONTENT[start:end]
    assert answer["Content-Range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"


@pytest.mark.django_db(transaction=True)
async def test_odd_ranges(async_client, artifact):
    answer, _ = await get(async_client, artifact, Range=f"bytes={len(CONTENT)}-")
    assert (answer.status_code, answer["Content-Range"]) == (416, f"bytes */{len(CONTENT)}")
    for asked in ("bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=x-y"):
        answer, body = await get(async_client, artifact, Range=asked)
        assert (answer.status_code, len(body)) == (200, len(CONTENT))
    answer, body = await get(async_client, artifact, Range="bytes=0-9", If_Range='"other"')
    assert (answer.status_code, len(body)) == (200, len(CONTENT))
    answer, _ = await get(async_client, artifact, If_None_Match=f'"{artifact.sha256}"')
    assert answer.status_code == 304


@pytest.mark.django_db(transaction=True)
async def test_a_look_at_the_head_names_the_size(async_client, artifact):
    answer = await async_client.head(f"/artifacts/{artifact.sha256}/{artifact.filename}")
    assert (answer.status_code, answer["Content-Length"]) == (200, str(len(CONTENT)))
    assert answer.content == b""


def test_unknown_files_and_names_are_not_found(client, artifact):
    for path in (
        f"/artifacts/{'0' * 64}/{artifact.filename}",
        f"/artifacts/{artifact.sha256}/other.jsonl",
        f"/artifacts/{artifact.sha256}/../../secret_key",
        "/launcher/lock/gpu.txt",
        "/launcher/wheels/other.whl",
        f"/launcher/{'x' * 40}/potluck.pyz",
    ):
        assert client.get(path).status_code == 404, path


def test_the_same_content_is_kept_once(artifact, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_bytes(CONTENT)
    assert register_file(other, "text") == artifact
    assert Artifact.objects.count() == 1
    with pytest.raises(ValueError, match="plain"):
        register_file(other, "text", filename="../x")


def written(folder, number):
    path = folder / f"{number}.safetensors"
    path.write_bytes(b"state %d" % number)
    return CheckpointWritten(
        round=number,
        filename=path.name,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        size_bytes=path.stat().st_size,
    )


def test_a_checkpoint_is_taken_over_once(collaboration, tmp_path):
    message = written(tmp_path, 20)
    first = register_checkpoint(collaboration, message, tmp_path)
    assert register_checkpoint(collaboration, message, tmp_path) == first
    assert newest_checkpoint(collaboration).round == 20


def test_a15_a_checkpoint_that_is_not_what_was_announced_is_refused(collaboration, tmp_path):
    register_checkpoint(collaboration, written(tmp_path, 20), tmp_path)
    for damage in (b"", b"stat", b"State 40"):
        message = written(tmp_path, 40)
        (tmp_path / "40.safetensors").write_bytes(damage)
        with pytest.raises(UserError, match="round 40"):
            register_checkpoint(collaboration, message, tmp_path)
    (tmp_path / "40.safetensors").unlink()
    with pytest.raises(UserError, match="missing"):
        register_checkpoint(collaboration, message, tmp_path)
    assert newest_checkpoint(collaboration).round == 20


def test_a_launcher_for_machines_without_a_browser(client, alice, collaboration):
    code = make_code(alice, collaboration=collaboration, device_name="lab <pc>")
    answer = client.get(f"/launcher/{code}/potluck.pyz")
    assert answer["Cache-Control"] == "no-store"
    with zipfile.ZipFile(BytesIO(answer.content)) as archive:
        config = json.loads(archive.read("config.json"))
    assert (config["code"], config["device_name"]) == (code, "lab <pc>")


async def test_the_manifest_names_files_that_are_there_with_their_hash(async_client):
    manifest = (await async_client.get("/launcher/manifest.json")).json()
    lock = await async_client.get("/launcher/lock/cpu.txt")
    assert hashlib.sha256(lock.content).hexdigest() == manifest["locks"]["cpu"]
    wheel = await async_client.get(f"/launcher/wheels/{manifest['trainer']['name']}")
    content = b"".join([piece async for piece in wheel.streaming_content])
    assert hashlib.sha256(content).hexdigest() == manifest["trainer"]["sha256"]
