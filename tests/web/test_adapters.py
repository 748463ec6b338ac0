"""Adapters on the site: offered beside the checkpoint they are in, as PEFT loads them."""

from __future__ import annotations

import io
import json
import zipfile

import numpy
import pytest
from django.core.management import CommandError, call_command
from safetensors.numpy import load, save_file

from tests.factories import make_collaboration, make_file
from tests.web.filled import filled
from trainer.recipe import Base, Choice
from webapp.artifacts.bases import offered_bases
from webapp.artifacts.models import Checkpoint
from webapp.artifacts.services import register_file
from webapp.collaborations.prefill import initial_of, left_out

MODULE = "model.layers.0.self_attn.q_proj"
A, B = f"{MODULE}.lora_A.default.weight", f"{MODULE}.lora_B.default.weight"


@pytest.fixture(autouse=True)
def artifacts_folder(settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path / "artifacts"


def make_base() -> Base:
    files = (make_file(b"{}", "config.json"), make_file(b"weights", "model.safetensors"))
    matrix = {"name": "self_attn.q_proj", "count": 1, "inputs": 4, "outputs": 4}
    return Base(kind="site", files=files, parameters=16, matrices=(matrix,))


@pytest.fixture
def with_adapter(db):
    return make_collaboration(
        "tuned",
        family=Choice(name="pretrained_causal"),
        base=make_base(),
        adapter=Choice(name="lora", params={"rank": 2}),
    )


def give(collaboration, tmp_path):
    values = {A: numpy.ones((2, 4), "f4"), B: numpy.full((4, 2), 2, "f4")}
    stored = {f"{kind}.{n}": v for kind in ("model", "exp_avg") for n, v in values.items()}
    path = tmp_path / "checkpoint-000000003.safetensors"
    save_file(stored, path)
    artifact = register_file(path, "checkpoint", title=collaboration.slug)
    return Checkpoint.objects.create(collaboration=collaboration, artifact=artifact, round=3)


def test_the_adapter_of_a_checkpoint_is_a_folder_that_peft_loads(client, with_adapter, tmp_path):
    checkpoint = give(with_adapter, tmp_path)
    url = f"/artifacts/{checkpoint.artifact.sha256}/adapter/potluck-adapter.zip"
    page = client.get("/c/tuned/").content.decode()
    assert f'href="{url}"' in page
    assert "It begins with a trained model of 16 parameters" in page
    assert "<b>a LoRA adapter beside a trained model</b>, 16 parameters" in page  # 2 x (4 + 4)
    answer = client.get(url)
    assert answer.status_code == 200 and answer["Content-Type"] == "application/zip"
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    weights = load(archive.read("adapter_model.safetensors"))
    assert sorted(weights) == [f"base_model.model.{MODULE}.lora_{x}.weight" for x in "AB"]
    assert weights[f"base_model.model.{MODULE}.lora_B.weight"].tolist() == [[2.0, 2.0]] * 4
    config = json.loads(archive.read("adapter_config.json"))
    assert config["target_modules"] == [MODULE] and config["r"] == 2
    shown = client.get("/api/v1/collaborations/tuned").json()["checkpoint"]
    assert shown["adapter_url"] == url


def test_a_collaboration_without_an_adapter_has_none_to_download(client, collaboration, tmp_path):
    checkpoint = give(collaboration, tmp_path)
    url = f"/artifacts/{checkpoint.artifact.sha256}/adapter/potluck-adapter.zip"
    assert client.get(url).status_code == 404
    assert "potluck-adapter.zip" not in client.get("/c/demo/").content.decode()
    assert client.get("/api/v1/collaborations/demo").json()["checkpoint"]["adapter_url"] == ""
    assert client.get(f"/artifacts/{'0' * 64}/adapter/potluck-adapter.zip").status_code == 404


@pytest.fixture
def folder(tmp_path):
    """Of a base, as save_pretrained writes it; too small for anything else."""
    place = tmp_path / "Tiny model"
    place.mkdir()
    (place / "config.json").write_text('{"model_type": "llama"}')
    save_file({f"{MODULE}.weight": numpy.ones((4, 8), "f4")}, place / "model.safetensors")
    return place


def chosen(files, key, **more):
    given = {"family": "pretrained_causal", "base": key, "adapter": "lora", "strategy": "fedavg"}
    return filled(files, **{**given, "adapter__lora__rank": "2", **more})


def test_an_added_base_is_offered_and_makes_a_recipe_with_an_adapter(
    files, folder, client, olga, capsys
):
    call_command("add_base", str(folder), precision="bf16")
    assert "Tiny model is offered; there is no tokenizer.json" in capsys.readouterr().out
    ((key, (title, base)),) = offered_bases().items()
    assert title == "Tiny model" and base.kind == "site" and base.precision == "bf16"
    for file in base.files:
        url = f"/artifacts/{file.sha256}/{file.filename}"
        assert client.head(url)["Content-Length"] == str((folder / file.filename).stat().st_size)
    form = chosen(files, key)
    assert form.is_valid(), form.errors
    draft = form.save(by=olga)
    assert draft.recipe.base == base
    assert draft.recipe.adapter.params["rank"] == 2
    again = initial_of(draft)
    assert (again["base"], again["adapter"], again["adapter__lora__rank"]) == (key, "lora", 2)
    on_site = {str(file.sha256) for file in files.values()}
    assert left_out(draft.recipe, {*on_site, key}) == []
    assert "trained model it begins with" in left_out(draft.recipe, on_site)[0]
    client.force_login(olga)
    page = client.get("/console/create/").content.decode()
    assert 'data-of="adapter" data-choice="lora"' in page and "Tiny model" in page


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"adapter__lora__targets": "k_proj"}, "this base has no k_proj to adapt"),
        ({"adapter__lora__rank": "5"}, "rank 5 is more than"),
        ({"adapter__lora__targets": "<q>"}, "adapter__lora__targets<ul"),
        ({"base": ""}, "the recipe names none"),
        ({"adapter": "top_layers"}, "no layers of which the last ones can be told apart"),
        ({"family": "causal"}, "causal begins with no base"),
        ({"adapter": ""}, "choose an adapter, or fp32"),
        ({"strategy": "diloco", "adapter__lora__mode": "exact"}, "mode exact makes the average"),
    ],
)
def test_an_adapter_that_does_not_fit_is_told_in_the_form(files, folder, changed, words):
    call_command("add_base", str(folder), precision="bf16")
    (key,) = offered_bases()
    form = chosen(files, key, **changed)
    assert not form.is_valid() and words in str(form.errors)


def test_top_layers_are_chosen_in_the_form_and_have_no_file_of_peft(
    files, folder, client, olga, tmp_path
):
    (folder / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 1}')
    call_command("add_base", str(folder))
    (key,) = offered_bases()
    form = chosen(files, key, adapter="top_layers", adapter__top_layers__layers="1")
    assert form.is_valid(), form.errors
    draft = form.save(by=olga)
    assert draft.recipe.adapter == Choice(name="top_layers", params={"layers": 1})
    draft.state = "open"
    draft.save()
    checkpoint = give(draft, tmp_path)
    page = client.get(f"/c/{draft.slug}/").content.decode()
    assert "trains and travels is <b>the top layers of a trained model</b>, 32 parameters" in page
    assert "potluck-adapter.zip" not in page
    url = f"/artifacts/{checkpoint.artifact.sha256}/adapter/potluck-adapter.zip"
    assert client.get(url).status_code == 404
    shown = client.get(f"/api/v1/collaborations/{draft.slug}").json()["checkpoint"]
    assert shown["adapter_url"] == ""


def test_a_base_that_lies_elsewhere_keeps_its_files_there(db, folder, client):
    call_command("add_base", str(folder), title="Theirs", at="someone/tiny@v1")
    ((title, base),) = offered_bases().values()
    assert (title, base.kind, base.place) == ("Theirs", "hub", "someone/tiny@v1")
    file = base.files[0]
    assert client.get(f"/artifacts/{file.sha256}/{file.filename}").status_code == 404
    (folder / "config.json").unlink()
    with pytest.raises(CommandError, match=r"no config\.json"):
        call_command("add_base", str(folder))


def test_a_tokenizer_that_is_none_is_told_before_anything_is_offered(db, folder):
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(CommandError, match=r"tokenizer\.json is no tokenizer"):
        call_command("add_base", str(folder))
    assert not offered_bases()


def test_a_base_that_is_offered_already_is_told_by_the_title_it_has(db, folder, capsys):
    call_command("add_base", str(folder), title="x" * 500)
    call_command("add_base", str(folder), title="Another")
    ((title, _),) = offered_bases().values()
    assert title == "x" * 120
    assert f"{title} is offered" in capsys.readouterr().out.splitlines()[-1]
