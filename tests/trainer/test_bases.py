"""What is read of a base before it is used, how it gets to a device, and which ones are refused."""

from __future__ import annotations

import pytest
from huggingface_hub import constants

from tests.answering import Answering
from tests.trainer.models import make_recipe
from tests.trainer.tiny_bases import adapt, described, lora, make_learner
from trainer import catalogue
from trainer.agent.files import Files
from trainer.bases import NotABase, chosen, describe, matrix_name
from trainer.commands import main
from trainer.launcher import web
from trainer.launcher.place import Unusable
from trainer.parts import Special
from trainer.recipe import Base, Choice, Recipe
from trainer.simulator.files import read_recipe


def test_a_matrix_is_named_by_what_comes_after_its_layers_number():
    assert matrix_name("model.layers.0.self_attn.q_proj") == "self_attn.q_proj"
    assert matrix_name("encoder.block.0.layer.1.EncDecAttention.q") == "EncDecAttention.q"
    assert matrix_name("lm_head") == matrix_name("cls.predictions.transform.dense") == ""


def test_a_target_means_all_matrices_whose_name_ends_so(base_of):
    base = described(base_of("bert"))
    assert [m.name for m in chosen(base, ["output.dense"])] == [
        "attention.output.dense",
        "output.dense",
    ]
    assert all("embed" not in matrix.name for matrix in described(base_of("t5")).matrices)


def test_special_tokens_are_read_from_the_bases_tokenizer(base_of, tmp_path):
    for path in base_of().iterdir():
        (tmp_path / path.name).symlink_to(path)
    assert describe(tmp_path).special == Special()
    (tmp_path / "tokenizer_config.json").write_text(
        '{"eos_token": {"content": "<|end|>"}, "unk_token": "<unk>", "bos_token": null}'
    )
    special = Special(pad="<|end|>", end="<|end|>", start="", unknown="<unk>", mask="")
    assert describe(tmp_path).special == special


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"targets": "q_proj,qproj"}, "this base has no qproj to adapt: choose among"),
        ({"rank": 64}, "rank 64 is more than"),
    ],
)
def test_an_adapter_that_would_not_reach_what_it_names_is_refused(base_of, params, complaint):
    recipe = adapt(base_of(), adapter=lora(**params))
    with pytest.raises(ValueError, match=complaint):
        catalogue.check(recipe)


def test_a_base_that_is_not_what_its_description_says_is_refused(base_of):
    """PEFT adapts what it finds, and says nothing of the rest."""
    base = described(base_of())
    more = [m.model_copy(update={"count": m.count + 1}) for m in base.matrices]
    recipe = adapt(base_of(), base=base.model_copy(update={"matrices": tuple(more)}))
    with pytest.raises(ValueError, match="describe it anew"):
        make_learner(recipe, base_of())


def test_a_base_without_the_head_that_the_family_needs_is_refused(base_of):
    """transformers would give it random values, and every device would freeze others."""
    recipe = adapt(base_of("gpt2"), "gpt2")
    wrong = recipe.model_copy(update={"family": Choice(name="pretrained_masked")})
    with pytest.raises(ValueError, match=r"cannot be loaded as A trained model \(masked"):
        make_learner(wrong, base_of("gpt2"))


def test_an_encoder_whose_head_was_left_out_is_refused(base_of, tmp_path):
    from transformers import BertModel

    BertModel.from_pretrained(base_of("bert")).save_pretrained(tmp_path)
    recipe = adapt(tmp_path, "bert")
    with pytest.raises(ValueError, match=r"the base has no values for cls\.predictions"):
        make_learner(recipe, tmp_path)


def test_a_tokenizer_or_length_that_the_base_does_not_know_is_refused(base_of):
    recipe = adapt(base_of())
    tokenizer = recipe.tokenizer.model_copy(update={"vocab_size": 100})
    with pytest.raises(ValueError, match="the tokenizer has 100 tokens and the base knows 64"):
        make_learner(recipe.model_copy(update={"tokenizer": tokenizer}), base_of())
    with pytest.raises(ValueError, match="lower sequence_length"):
        make_learner(recipe.model_copy(update={"sequence_length": 64}), base_of())
    with pytest.raises(ValueError, match="its files are not here"):
        make_learner(recipe, None)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"base": None}, "adapts a base, and the recipe names none"),
        ({"adapter": None, "base": {"precision": "bf16"}}, "choose an adapter, or fp32"),
        ({"base": {"kind": "http", "place": "/home/me"}}, "cannot be at '/home/me'"),
        ({"base": {"kind": "hub", "place": "one/two/three"}}, "cannot be at"),
        ({"base": {"files": "model.py"}}, "model.py may not be part of a base"),
        ({"base": {"files": "pytorch_model.bin"}}, "may not be part of a base"),
        ({"base": {"files": "weights.safetensors"}}, "one config.json"),
    ],
)
def test_a_recipe_whose_base_makes_no_sense_is_refused(base_of, change, complaint):
    document = adapt(base_of()).model_dump(mode="json")
    for key, value in change.items():
        if isinstance(value, dict):
            if name := value.get("files"):
                value = {"files": [{**f, "filename": name} for f in document["base"]["files"]]}
            value = {**document[key], **value}
        document[key] = value
    with pytest.raises(ValueError, match=complaint):
        Recipe.model_validate(document)


def test_families_with_and_without_a_base_are_told_apart(base_of):
    with pytest.raises(ValueError, match="pretrained_causal begins with a base: name one"):
        catalogue.check(
            make_recipe().model_copy(update={"family": Choice(name="pretrained_causal")})
        )
    recipe = adapt(base_of())
    with pytest.raises(ValueError, match="albert begins with no base"):
        catalogue.check(recipe.model_copy(update={"family": make_recipe().family}))


def test_weights_in_a_format_that_may_hold_code_are_not_described(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(NotABase, match="holds no safetensors"):
        describe(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"pickle")
    with pytest.raises(NotABase, match="is no safetensors file"):
        describe(tmp_path)


class BaseSite(Answering):
    """Has the files of a folder under any address, each damaged so many times first."""

    def __init__(self, folder, damaged=0):
        self.folder, self.damaged, self.asked = folder, damaged, []

    def answer(self, method, path, body):
        self.asked.append(path)
        content = (self.folder / path.rsplit("/", 1)[1]).read_bytes()
        if self.damaged and path.endswith(".safetensors"):
            self.damaged -= 1
            return 200, b"?" * len(content)
        return 200, content


@pytest.mark.parametrize(
    ("kind", "place", "address"),
    [
        ("site", "", "/artifacts/{sha256}/config.json"),
        ("http", "{site}/models/tiny/", "/models/tiny/config.json"),
        ("hub", "someone/tiny@v1", "/someone/tiny/resolve/v1/config.json"),
    ],
)
def test_a_base_is_fetched_once_checked_and_used(
    base_of, tmp_path, monkeypatch, kind, place, address
):
    site = BaseSite(base_of(), damaged=1).start()
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE
    here = template.replace(constants.ENDPOINT, site.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", here)
    where = {"kind": kind, "place": place.format(site=site.url)}
    base = described(base_of()).model_copy(update=where)
    files = Files(site.url, tmp_path)
    folder = files.fetch_base(base)
    sha256 = next(f.sha256 for f in base.files if f.filename == "config.json")
    assert address.format(sha256=sha256) in site.asked
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        file.filename for file in base.files
    )
    num_asked = len(site.asked)
    assert num_asked == len(base.files) + 1  # one came damaged
    assert files.fetch_base(base) == folder and len(site.asked) == num_asked
    (folder / "config.json").write_text("{}")
    files.fetch_base(base)
    assert len(site.asked) == num_asked + 1
    site.stop()
    make_learner(adapt(base_of(), base=base), folder)


def test_a_base_that_stays_damaged_is_not_used(base_of, tmp_path):
    site = BaseSite(base_of(), damaged=9).start()
    base = described(base_of()).model_copy(update={"kind": "site", "place": ""})
    with pytest.raises(web.Damaged, match=r"model\.safetensors arrived damaged"):
        Files(site.url, tmp_path).fetch_base(base)
    site.stop()


def test_a_folder_on_the_device_is_used_where_it_is_if_it_is_the_recipes(base_of, tmp_path):
    base = described(base_of())
    files = Files("http://127.0.0.1:1", tmp_path)
    folder = files.fetch_base(base)
    assert (folder / "model.safetensors").resolve() == base_of() / "model.safetensors"
    assert files.fetch_base(base) == folder
    own = tmp_path / "own"
    own.mkdir()
    elsewhere = base.model_copy(update={"place": str(own)})
    with pytest.raises(Unusable, match="is not on this computer"):
        files.fetch_base(elsewhere)
    for path in base_of().iterdir():
        (own / path.name).write_bytes(path.read_bytes() + b" ")
    with pytest.raises(Unusable, match="is not what the recipe means"):
        files.fetch_base(elsewhere)


def test_the_command_prints_what_a_recipe_says_of_a_base(base_of, capsys):
    assert main(["base", str(base_of()), "--at", "someone/tiny@v1", "--precision", "bf16"]) == 0
    base = Base.model_validate_json(capsys.readouterr().out)
    where = {"kind": "hub", "place": "someone/tiny@v1", "precision": "bf16"}
    assert base == described(base_of()).model_copy(update=where)
    assert main(["base", str(base_of() / "nowhere")]) == 1
    assert main(["base", str(base_of().parent)]) == 1
    said = capsys.readouterr().err
    assert "nowhere cannot be read" in said and "This is no base: " in said


def test_a_recipe_with_a_base_is_not_rehearsed(base_of, tmp_path):
    path = tmp_path / "recipe.json"
    path.write_text(adapt(base_of()).model_dump_json())
    with pytest.raises(Unusable, match="cannot be rehearsed here: each of its peers"):
        read_recipe(path)


def test_a_recipe_without_a_base_needs_no_folder(tmp_path):
    assert Files("http://127.0.0.1:1", tmp_path).fetch_base(None) is None
