"""Perplexity of models that read a text with gaps and write what was in them, by hand."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import math

import pyarrow as pa
import pytest
import torch
import transformers
from pyarrow import parquet
from tokenizers import Tokenizer as Encoder

from tests.trainer.archives import archived
from tests.trainer.bengali import EVERYTHING
from tests.trainer.evaluated import make_model, told
from tests.trainer.models import make_recipe
from tests.trainer.test_evaluate import evaluated
from trainer.data.corruption import corrupt
from trainer.data.masking import mask
from trainer.data.packing import pack
from trainer.data.spans import window
from trainer.engine.learner import Learner
from trainer.evaluation import perplexity
from trainer.evaluation.model import opened
from trainer.families.base import Objective
from trainer.launcher.web import sha256_of
from trainer.recipe import File, Tokenizer
from trainer.sources.file import FileSource


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "held-out.txt"
    path.write_text("\n".join(EVERYTHING))
    return path


@pytest.fixture
def t5(tmp_path):
    """With sentinels, as T5's tokenizer has them."""
    folder = make_model(tmp_path / "model", "t5")
    encoder = Encoder.from_file(str(folder / "tokenizer.json"))
    encoder.add_special_tokens([f"<extra_id_{number}>" for number in range(8)])
    encoder.save(str(folder / "tokenizer.json"))
    net = transformers.T5ForConditionalGeneration.from_pretrained(folder)
    net.resize_token_embeddings(encoder.get_vocab_size())
    net.save_pretrained(folder)
    return folder


def written_alone(net, read, attention, decoder, targets):
    """Losses of one sequence's targets, whose places in `decoder` are one late."""
    start = torch.tensor([net.config.decoder_start_token_id])
    seen = torch.cat([start, decoder[:-1]])[None]
    with torch.no_grad():
        logits = net(input_ids=read[None], attention_mask=attention[None], decoder_input_ids=seen)
    scores = logits.logits[0].log_softmax(1)
    return [-float(row[token]) for row, token in zip(scores, targets, strict=True) if token >= 0]


def test_c15_of_spans_it_is_that_of_what_each_gap_held_however_they_are_batched(
    t5, text, monkeypatch
):
    net = transformers.T5ForConditionalGeneration.from_pretrained(t5).eval()
    found = []
    for at_once in (1, 2**25):
        monkeypatch.setattr(perplexity, "SCORES_AT_ONCE", at_once)
        with opened(t5, None, None, None) as model:
            model = model._replace(length=32)
            found.append(perplexity.evaluate(model, text, 10_000, told))
            documents = FileSource(text).documents(perplexity.ORDER)
            cut = window(model.length)
            sequences = list(pack(documents, model.tokenizer, cut, framed=False))
            seeded = torch.Generator().manual_seed(perplexity.SEED)
            batch = corrupt(sequences, model.tokenizer, seeded)
    losses, hidden = [], 0
    for ids, attention, row in zip(batch.ids, batch.attention, batch.targets, strict=True):
        targets = row[row >= 0]
        losses += written_alone(net, ids, attention, targets, targets)
        hidden += len(targets)
    assert len(sequences) > 2 and hidden == len(losses)
    for result in found:
        assert [score.name for score in result.scores] == ["span_perplexity", "loss"]
        assert result.data["tokens"] == len(losses)
        assert result.scores[1].mean == pytest.approx(math.fsum(losses) / len(losses), rel=1e-4)


def test_the_first_spans_count_where_fewer_tokens_are_asked_for(t5, text):
    with opened(t5, None, None, None) as model:
        model = model._replace(length=32)
        whole = perplexity.evaluate(model, text, 10_000, told)
        counts = [perplexity.evaluate(model, text, n, told).data["tokens"] for n in (1, 7, 20)]
    assert counts == [1, 7, 20] and whole.data["tokens"] > 20


@pytest.mark.parametrize("make", ["bart", "t5"])
def test_without_sentinels_it_is_that_of_masked_tokens_in_the_text_that_is_written(
    tmp_path, text, make
):
    folder = make_model(tmp_path / "model", make)
    net = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    with opened(folder, None, None, None) as model:
        result = perplexity.evaluate(model, text, 10_000, told)
        documents = FileSource(text).documents(perplexity.ORDER)
        rows = list(pack(documents, model.tokenizer, model.length, framed=True))
        ids = torch.tensor([row + [0] * (model.length - len(row)) for row in rows])
        batch = mask(ids, model.tokenizer, torch.Generator().manual_seed(perplexity.SEED), False)
    losses = []
    for read, attention, row in zip(batch.ids, batch.attention, batch.targets, strict=True):
        losses += written_alone(net, read, attention, read.where(row < 0, row), row)
    assert result.scores[0].name == "masked_perplexity"
    assert result.data["tokens"] == len(losses)
    assert result.scores[1].mean == pytest.approx(math.fsum(losses) / len(losses), rel=1e-4)


def test_of_a_prefix_lm_it_is_that_of_what_comes_after_the_prefix(tmp_path, text):
    tokenizer = make_model(tmp_path / "model") / "tokenizer.json"
    size = len(json.loads(tokenizer.read_text())["model"]["vocab"])
    file = File(sha256=sha256_of(tokenizer), size_bytes=1, filename="tokenizer.json")
    recipe = make_recipe("prefix", tokenizer=Tokenizer(file=file, vocab_size=size))
    checkpoint = tmp_path / "checkpoint-000000000.safetensors"
    Learner(recipe, 0).save(checkpoint)
    losses = []
    with opened(checkpoint, tokenizer, recipe, None) as model:
        result = perplexity.evaluate(model, text, 10_000, told)
        net = model.whole().eval()
        batch = next(perplexity._as_trained(model, FileSource(text), 100))
    for ids, row, attention in zip(batch.ids, batch.targets, batch.attention, strict=True):
        length = int(attention.sum())
        prefix = int((row != batch.IGNORE).nonzero()[0]) if (row != batch.IGNORE).any() else length
        places = torch.arange(length)
        seen = (places[None] <= places[:, None]) | (places[None] < prefix)
        with torch.no_grad():
            logits = net(ids[None, :length], attention_mask=seen[None, None]).logits[0]
        scores = logits.log_softmax(1)
        losses += [-float(scores[at - 1, ids[at]]) for at in range(prefix, length)]
    assert result.scores[0].name == "prefix_perplexity"
    assert result.data["tokens"] == len(losses)
    assert result.scores[1].mean == pytest.approx(math.fsum(losses) / len(losses), rel=1e-4)


def test_what_guesses_something_unknown_is_refused_in_words(tmp_path, text):
    folder = make_model(tmp_path / "model", "gpt2")
    with opened(folder, None, None, None) as model:
        model.family.objective = Objective("riddles")
        with pytest.raises(ValueError, match="guesses 'riddles', of which no perplexity is known"):
            perplexity.evaluate(model, text, 100, told)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_packed_text_is_worth_what_is_in_it(tmp_path, capsys, pack):
    folder, plain, packed = make_model(tmp_path / "model"), tmp_path / "plain", tmp_path / "packed"
    content = b"\xff\n" + " ".join(EVERYTHING).encode()
    plain.write_bytes(content)
    packed.write_bytes(pack(content))
    found, known = (evaluated(capsys, "perplexity", folder, text) for text in (packed, plain))
    assert found["scores"] == known["scores"]
    assert found["data"] == known["data"] and known["data"]["lines that cannot be read"] == 1


def test_a_table_is_worth_what_its_texts_are(tmp_path, capsys):
    folder, plain, table = make_model(tmp_path / "model"), tmp_path / "plain", tmp_path / "table"
    plain.write_text(" ".join(EVERYTHING))
    parquet.write_table(pa.table({"id": [1], "text": [plain.read_text()]}), table)
    found, known = (evaluated(capsys, "perplexity", folder, text) for text in (table, plain))
    assert found["scores"] == known["scores"]


def test_the_order_of_a_packed_text_is_the_same_each_time(tmp_path, text, capsys):
    folder, packed = make_model(tmp_path / "model"), tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    words = ["perplexity", folder, packed, "--most-tokens", 50]
    assert evaluated(capsys, *words)["scores"] == evaluated(capsys, *words)["scores"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda text: archived("zip", text), "is a zip archive: unpack it"),
        (lambda text: archived("w", text), "is a tar archive: unpack it"),
        (lambda text: archived("w:gz", text), "is a tar archive: unpack it"),
        (lambda text: codecs.BOM_UTF16_LE + text.decode().encode("utf-16-le"), "save it as UTF-8"),
        (lambda text: b"PAR1" + text, "it is no Parquet file"),
    ],
)
def test_what_is_no_text_is_refused_with_what_to_do(tmp_path, text, capsys, made, said):
    text.write_bytes(made(text.read_bytes()))
    folder = make_model(tmp_path / "model")
    refused = evaluated(capsys, "perplexity", folder, text, fails=True)
    assert "This cannot be evaluated: " in refused and said in refused
