"""Checkpoints as others load them: merged, and as an adapter."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
import torch
import transformers
from peft import PeftModel
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Encoder

from tests.trainer.bengali import EVERYTHING
from tests.trainer.models import SHAPES, make_batch, make_recipe, play_round
from tests.trainer.tiny_bases import MAKES, adapt, described, lora, make_learner
from trainer.adapter_files import CONFIG, WEIGHTS, adapter_files, adapter_zip
from trainer.commands import main
from trainer.engine import checkpoint
from trainer.engine.learner import Learner
from trainer.launcher.web import sha256_of
from trainer.recipe import Choice, File, Tokenizer
from trainer.text.tokenizer import Tokenizer as OwnTokenizer


def trained(recipe, folder=None):
    learner = Learner(recipe, 0, folder)
    for number in range(3):
        play_round(learner, make_batch(number))
    return learner


def exported(learner, tmp_path, *words):
    path, recipe = tmp_path / checkpoint.filename(3), tmp_path / "recipe.json"
    learner.save(path)
    recipe.write_text(learner.recipe.model_dump_json())
    out = tmp_path / "out"
    code = main(["export", str(path), str(out), "--recipe", str(recipe), *words])
    return path, out, code


def loss_of(learner, model):
    model.eval()
    with torch.no_grad():
        return float(learner.family.loss_sum(model, make_batch(9)))


def own_loss(learner):
    loss, tokens = learner.evaluate([make_batch(9)])
    return loss * tokens


@pytest.mark.parametrize("make", list(MAKES))
@pytest.mark.parametrize("mode", ["average", "freeze_a"])
def test_the_merged_model_and_peft_say_what_the_learner_says(
    base_of, tmp_path, monkeypatch, make, mode
):
    monkeypatch.setenv("POTLUCK_HOME", str(tmp_path / "home"))
    folder = base_of(make)
    strategy = Choice(name="fedavg")
    recipe = adapt(folder, make, adapter=lora(rank=4, mode=mode), strategy=strategy)
    learner = trained(recipe, folder)
    _, out, code = exported(learner, tmp_path, "--base", str(folder))
    assert code == 0
    model_class = getattr(transformers, MAKES[make][1])
    merged, found = model_class.from_pretrained(out, output_loading_info=True)
    assert not any(found[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    begun = loss_of(learner, model_class.from_pretrained(folder))
    assert loss_of(learner, merged) == pytest.approx(own_loss(learner), rel=1e-5)
    assert abs(begun - own_loss(learner)) > 1e-3 * begun
    adapted = PeftModel.from_pretrained(model_class.from_pretrained(folder), out / "adapter")
    assert loss_of(learner, adapted) == pytest.approx(own_loss(learner), rel=1e-5)


def test_the_adapters_zip_is_made_of_the_checkpoint_alone(base_of, tmp_path):
    learner = trained(adapt(base_of()), base_of())
    path = tmp_path / checkpoint.filename(3)
    learner.save(path)
    packed = adapter_zip(path, learner.recipe)
    assert packed == adapter_zip(path, learner.recipe)
    archive = zipfile.ZipFile(io.BytesIO(packed))
    archive.extractall(tmp_path / "adapter")
    assert sorted(archive.namelist()) == [CONFIG, WEIGHTS]
    stored = load_file(tmp_path / "adapter" / WEIGHTS)
    named = dict(zip(learner.names, learner.params, strict=True))
    assert len(stored) == len(named)
    for name, param in named.items():
        theirs = "base_model.model." + name.replace(".default.", ".")
        assert torch.equal(stored[theirs], param)
    config = json.loads((tmp_path / "adapter" / CONFIG).read_text())
    assert (config["r"], config["lora_alpha"], config["task_type"]) == (4, 16.0, "CAUSAL_LM")


def test_a_recipe_without_an_adapter_has_none_to_give_away(tmp_path):
    learner = trained(make_recipe())
    path, out, code = exported(learner, tmp_path)
    assert code == 0
    model = transformers.AlbertForMaskedLM.from_pretrained(out)
    assert loss_of(learner, model) == pytest.approx(own_loss(learner), rel=1e-5)
    with pytest.raises(ValueError, match="trains no adapter"):
        adapter_files(path, learner.recipe)


@pytest.mark.parametrize("tied", [True, False])
def test_a_llama_is_exported_as_it_was_trained(tmp_path, tied):
    family = Choice(name="llama", params=SHAPES["llama"] | {"tied": tied})
    learner = trained(make_recipe().model_copy(update={"family": family}))
    _, out, code = exported(learner, tmp_path)
    model, found = transformers.AutoModelForCausalLM.from_pretrained(out, output_loading_info=True)
    assert code == 0 and not found["missing_keys"]
    assert type(model) is transformers.LlamaForCausalLM
    assert (model.lm_head.weight is model.model.embed_tokens.weight) is tied
    assert loss_of(learner, model) == pytest.approx(own_loss(learner), rel=1e-5)
    said = model.generate(make_batch().ids[:1, :4], max_new_tokens=3, do_sample=False)
    assert said.shape == (1, 7)


def test_a_value_that_does_not_arrive_is_not_exported_in_silence(
    base_of, tmp_path, monkeypatch, capsys
):
    """As where another version of a model calls its layers otherwise."""
    monkeypatch.setenv("POTLUCK_HOME", str(tmp_path / "home"))
    load = PeftModel.from_pretrained

    def renamed(model, folder):
        named = load_file(folder / WEIGHTS)
        moved = {name.replace("q_proj", "query"): tensor for name, tensor in named.items()}
        save_file(moved, folder / WEIGHTS)
        return load(model, folder)

    monkeypatch.setattr(PeftModel, "from_pretrained", renamed)
    learner = trained(adapt(base_of()), base_of())
    _, out, code = exported(learner, tmp_path, "--base", str(base_of()))
    assert code == 1 and not (out / "model.safetensors").exists()
    assert "did not arrive in the exported model" in capsys.readouterr().err


def test_what_cannot_be_exported_is_told_in_words(base_of, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("POTLUCK_HOME", str(tmp_path / "home"))
    base = described(base_of()).model_copy(update={"kind": "site", "place": ""})
    learner = make_learner(adapt(base_of(), base=base), base_of())
    path, _, code = exported(learner, tmp_path)
    assert code == 1 and "give --site, or --base FOLDER" in capsys.readouterr().err
    path.write_bytes(path.read_bytes()[:-1])
    words = [str(path), str(tmp_path / "out"), "--recipe", str(tmp_path / "recipe.json")]
    assert main(["export", *words, "--base", str(base_of())]) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert main(["export", *words[:-1], str(tmp_path / "none.json")]) == 1
    assert "none.json cannot be read: No such file" in capsys.readouterr().err


TEXT = "সে বাড়ি যায় । ক্‍ষ 3:45 the cat sat"
PURPOSES = {"albert": "albert", "causal": "causal", "encoder_decoder": "encoder-decoder"}


@pytest.mark.parametrize("family", PURPOSES)
def test_the_tokenizer_beside_a_model_gives_the_tokens_it_was_trained_with(
    tmp_path, family, capsys
):
    file, texts = tmp_path / "tokenizer.json", tmp_path / "texts.txt"
    texts.write_text("\n".join([*EVERYTHING, TEXT] * 5))
    words = ("--size", "600", "--purpose", PURPOSES[family])
    assert main(["tokenizer", str(texts), "--out", str(file), *words]) == 0
    size = Encoder.from_file(str(file)).get_vocab_size()
    known = File(sha256=sha256_of(file), size_bytes=1, filename=file.name)
    recipe = make_recipe(family, tokenizer=Tokenizer(file=known, vocab_size=size))
    own = OwnTokenizer.of(recipe, file)
    learner = Learner(recipe, own.pad)
    _, out, code = exported(learner, tmp_path, "--tokenizer", str(file))
    assert code == 0, capsys.readouterr().err
    theirs = transformers.AutoTokenizer.from_pretrained(out)
    assert theirs(TEXT, add_special_tokens=False).input_ids == own.encode(TEXT)
    assert theirs.pad_token_id == own.pad and theirs.model_max_length == recipe.sequence_length
    ends = theirs.sep_token_id if family == "albert" else theirs.eos_token_id
    assert ends == own.end
    auto = {"albert": "MaskedLM", "causal": "CausalLM", "encoder_decoder": "Seq2SeqLM"}[family]
    model = getattr(transformers, f"AutoModelFor{auto}").from_pretrained(out)
    assert model.config.pad_token_id == own.pad
    if family != "albert":  # which writes nothing
        writes = model.generation_config
        assert writes.eos_token_id == own.end and writes.use_cache
    for name, param in learner.model.named_parameters():
        assert torch.equal(param, dict(model.named_parameters())[name])
    file.write_text(file.read_text() + " ")
    _, _, code = exported(learner, tmp_path, "--tokenizer", str(file))
    assert code == 1 and "not the recipe's tokenizer" in capsys.readouterr().err
