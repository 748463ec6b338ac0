"""`python -m trainer evaluate`: perplexities by hand, and heads that learn."""

from __future__ import annotations

import json
import math
import sys

import pytest
import torch
import transformers

from tests.trainer.bengali import EVERYTHING
from tests.trainer.evaluated import make_model, told, write_classes, write_tags
from tests.trainer.models import SHAPES, make_recipe
from tests.trainer.tiny_bases import MAKES
from trainer.commands import main
from trainer.engine.learner import Learner
from trainer.evaluation import perplexity
from trainer.evaluation.labelled import Sentence
from trainer.evaluation.model import opened
from trainer.evaluation.results import Score
from trainer.evaluation.tagging import items, scored
from trainer.launcher.web import sha256_of
from trainer.recipe import Choice, File, Tokenizer
from trainer.sources.file import FileSource


def write_text(folder):
    path = folder / "held-out.txt"
    path.write_text("\n".join(EVERYTHING))
    return path


def evaluated(capsys, *words, fails=False):
    """What it prints: the JSON of its line, or its error."""
    code = main(["evaluate", *map(str, words)])
    said = capsys.readouterr()
    assert code == int(fails), said.err
    return said.err if fails else json.loads(said.out)


@pytest.mark.parametrize("make", ["bert", "albert"])
def test_the_pseudo_perplexity_is_that_of_each_token_hidden_alone(tmp_path, make):
    folder, text = make_model(tmp_path / "model", make), write_text(tmp_path)
    net = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    with opened(folder, None, None, None) as model:
        result = perplexity.evaluate(model, text, 10_000, told)
        documents = list(FileSource(text).documents(perplexity.ORDER))
        sequences = list(perplexity.pack(documents, model.tokenizer, model.length, framed=True))
    losses = []
    for sequence in sequences:
        for place, token in enumerate(sequence):
            if token in model.tokenizer.special:
                continue
            hidden = torch.tensor([sequence])
            hidden[0, place] = model.tokenizer.mask
            with torch.no_grad():
                logits = net(hidden).logits[0, place]
            losses.append(-float(logits.log_softmax(0)[token]))
    mean = math.fsum(losses) / len(losses)
    assert result.data["tokens"] == len(losses)
    assert result.scores[0].name == "pseudo_perplexity"
    assert result.scores[0].mean == pytest.approx(math.exp(mean), rel=1e-4)


def test_c15_the_perplexity_is_a_mean_over_tokens_however_they_are_batched(tmp_path, monkeypatch):
    folder, text = make_model(tmp_path / "model", "gpt2"), write_text(tmp_path)
    net = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    found = []
    for at_once in (1, 2**25):
        monkeypatch.setattr(perplexity, "SCORES_AT_ONCE", at_once)
        with opened(folder, None, None, None) as model:
            found.append(perplexity.evaluate(model, text, 10_000, told))
    documents = FileSource(text).documents(perplexity.ORDER)
    losses = []
    for sequence in perplexity.pack(documents, model.tokenizer, model.length, framed=False):
        with torch.no_grad():
            logits = net(torch.tensor([sequence])).logits[0, :-1].log_softmax(1)
        losses += [-float(row[token]) for row, token in zip(logits, sequence[1:], strict=True)]
    assert len(sequence) < model.length  # the last one is shorter, and counts by its tokens
    for result in found:
        assert result.data["tokens"] == len(losses)
        assert result.scores[1].mean == pytest.approx(math.fsum(losses) / len(losses), rel=1e-5)


def test_no_more_tokens_are_scored_than_asked(tmp_path, capsys):
    folder, text = make_model(tmp_path / "model"), write_text(tmp_path)
    found = evaluated(capsys, "perplexity", folder, text, "--most-tokens", 33)
    assert found["data"]["tokens"] == 33


@pytest.mark.parametrize("sentence_order", [False, True])
def test_a_checkpoint_is_worth_what_its_export_is(tmp_path, capsys, sentence_order):
    tokenizer = make_model(tmp_path / "model") / "tokenizer.json"
    size = len(json.loads(tokenizer.read_text())["model"]["vocab"])
    file = File(sha256=sha256_of(tokenizer), size_bytes=1, filename="tokenizer.json")
    family = Choice(name="albert", params={**SHAPES["albert"], "sentence_order": sentence_order})
    recipe = make_recipe(tokenizer=Tokenizer(file=file, vocab_size=size))
    recipe = recipe.model_copy(update={"family": family})
    path, out = tmp_path / "checkpoint-000000000.safetensors", tmp_path / "out"
    Learner(recipe, 0).save(path)
    (tmp_path / "recipe.json").write_text(recipe.model_dump_json())
    words = ["--recipe", tmp_path / "recipe.json", "--tokenizer", tokenizer]
    found = evaluated(capsys, "perplexity", path, write_text(tmp_path), *words)
    assert found["model"] == {"name": path.name, "sha256": sha256_of(path)}
    assert main(["export", str(path), str(out), "--recipe", str(tmp_path / "recipe.json")]) == 0
    capsys.readouterr()
    again = evaluated(capsys, "perplexity", out, write_text(tmp_path), *words)
    assert again["scores"] == found["scores"]
    assert "needs --recipe and --tokenizer" in evaluated(
        capsys, "perplexity", path, write_text(tmp_path), fails=True
    )
    tokenizer.write_text(tokenizer.read_text() + " ")
    refused = evaluated(capsys, "perplexity", path, write_text(tmp_path), *words, fails=True)
    assert "is not the recipe's" in refused


@pytest.mark.parametrize("make", list(MAKES))
def test_every_kind_of_model_learns_tags(tmp_path, capsys, make):
    folder = make_model(tmp_path / "model", make)
    data = [write_tags(tmp_path / "train.txt", 60), write_tags(tmp_path / "test.txt", 30, seed=1)]
    words = ["--epochs", 12, "--rate", 0.01, "--report", tmp_path / "report.json"]
    found = evaluated(capsys, "tags", folder, *data, *words)
    assert found["metric"] == "span_f1" and found["scores"]["span_f1"]["n"] == 3
    usual, by_word = (row["scores"]["span_f1"] for row in found["baselines"])
    assert usual < by_word < 1  # a second name goes on with a span, which no word tells
    assert found["scores"]["span_f1"]["mean"] > by_word
    report = json.loads((tmp_path / "report.json").read_text())
    assert report.pop("basis") and len(report.pop("starts")) == 3
    assert report == {"complete": True, "doing": "", "share": 1.0, "result": found}


def test_a_run_goes_on_with_the_starts_of_an_earlier_one_of_the_same(tmp_path, capsys):
    folder, report = make_model(tmp_path / "model"), tmp_path / "report.json"
    words = ["tags", folder, write_tags(tmp_path / "names.conll", 40), "--epochs", 1]
    whole = evaluated(capsys, *words, "--report", report)["scores"]["span_f1"]["values"]
    known = json.loads(report.read_text())
    known["starts"] = {"1": {"span_f1": 0.125, "word_accuracy": 0.5}}  # as if it had come to that
    report.write_text(json.dumps(known))
    words += ["--report", report]
    found = evaluated(capsys, *words)
    assert found["scores"]["span_f1"]["values"] == [whole[0], 0.125, whole[2]]
    write_tags(tmp_path / "names.conll", 40, seed=1)
    code = main(["evaluate", *map(str, words)])
    said = capsys.readouterr()
    assert code == 0 and "all starts are done anew" in said.err
    assert 0.125 not in json.loads(said.out)["scores"]["span_f1"]["values"]
    report.write_text('{"starts": {"0": {"span_f1": "high"}}}')
    assert "is no report" in evaluated(capsys, *words, fails=True)


def test_tags_that_mark_no_spans_are_told_by_word_alone(tmp_path, capsys):
    folder = make_model(tmp_path / "model")
    data = write_tags(tmp_path / "pos.txt", 40, iob=False)
    found = evaluated(capsys, "tags", folder, data, "--epochs", 1)
    assert list(found["scores"]) == ["word_accuracy"]


def test_a_model_learns_classes_beside_its_baselines(tmp_path, capsys):
    folder = make_model(tmp_path / "model")
    data = [write_classes(tmp_path / "a.csv", 60), write_classes(tmp_path / "b.csv", 30, seed=1)]
    found = evaluated(capsys, "classes", folder, *data, "--epochs", 6, "--rate", 0.01)
    majority, linear = (row["scores"]["accuracy"] for row in found["baselines"])
    assert found["scores"]["accuracy"]["mean"] > 0.9 > majority and linear == 1


def test_classes_that_only_the_test_has_are_told(tmp_path, capsys):
    folder = make_model(tmp_path / "model")
    (tmp_path / "b.csv").write_text("label,text\npeople,Asha\nfood,rice\nfood,salt")
    data = [write_classes(tmp_path / "a.csv", 20), tmp_path / "b.csv"]
    found = evaluated(capsys, "classes", folder, *data, "--epochs", 1)["data"]
    assert (found["classes"], found["classes only the test has"]) == (3, 1)


def test_every_word_of_a_long_sentence_has_one_place_on_its_first_piece(tmp_path):
    folder = make_model(tmp_path / "model")
    words = ["Asha", "unpronounceable" * 20, "\u200d", "Dhaka"] * 9
    sentence = Sentence(tuple(words), tuple("abcd" * 9))
    with opened(folder, None, None, None) as model:
        parts = list(items(model, sentence, {tag: number for number, tag in enumerate("abcd")}))
        assert all(len(part.ids) <= model.length for part in parts)
        assert [label for part in parts for label in part.labels] == [0, 1, 2, 3] * 9
        first = [model.tokenizer.encode(word)[:1] for word in words]
        placed = [part.ids[place] for part in parts for place in part.places]
    known = [(a, b[0]) for a, b in zip(placed, first, strict=True) if b]
    assert len(known) >= 27 and all(a == b for a, b in known)


def test_spans_count_whole():
    truth, found = [["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]]
    assert scored(truth, found, in_spans=True) == {"span_f1": 0.5, "word_accuracy": 0.75}


def test_the_spread_is_the_samples(tmp_path):
    score = Score("accuracy", (0.5, 0.6, 0.7))
    assert score.std == pytest.approx(0.1)
    assert score.written() == "0.6000 ± 0.1000 (n = 3)"
    assert Score("loss", (1.0,)).written() == "1.0000"


def test_what_cannot_be_evaluated_is_told_in_words(tmp_path, capsys):
    folder, text = make_model(tmp_path / "model", "t5"), write_text(tmp_path)
    cases = [
        (["perplexity", folder, text, text], "perplexity is of one text"),
        (["perplexity", tmp_path, text], "holds no model"),
        (["tags", folder, text], "line 12, is no word with its tag"),
        (["tags", folder, tmp_path / "none"], "none cannot be used: No such file or directory.\n"),
        (["tags", folder, text / "x"], "x cannot be used: Not a directory.\n"),
        (["tags", folder, text, "--starts", 2], "fewer than 3 tell no spread"),
        (["tags", folder, text, "--rate", 0], "--rate 0.0: more than 0"),
    ]
    for words, said in cases:
        assert said in evaluated(capsys, *words, fails=True)


@pytest.mark.parametrize(("task", "lacks"), [("tags", "seqeval"), ("classes", "sklearn")])
def test_what_is_not_installed_is_named_before_anything_is_computed(
    tmp_path, capsys, monkeypatch, task, lacks
):
    monkeypatch.setitem(sys.modules, lacks, None)
    assert f"{task} needs s" in evaluated(capsys, task, tmp_path, tmp_path, fails=True)
