"""Tokenizers made from texts: what comes out, again the same, and what transformers loads."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Encoder
from tokenizers import models

from tests.trainer.bengali import BENGALI, EVERYTHING
from trainer.data.batches import batches
from trainer.families.base import MASKED, Batch
from trainer.text.corpus import Corpus
from trainer.text.making import make
from trainer.text.normal_form import normal_form
from trainer.text.preview import preview
from trainer.text.roles import LAYOUTS
from trainer.text.spans import spans
from trainer.text.tokenizer import Tokenizer, TokenizerError, train_tokenizer
from trainer.tokenizing import HIDING, Wanted

SIZE = 450


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(EVERYTHING * 20) + "\n")
    return path


@pytest.fixture(scope="module")
def made(texts, tmp_path_factory):
    """{purpose: the file}"""
    folder = tmp_path_factory.mktemp("made")
    for purpose in LAYOUTS:
        make(Corpus([texts]), Wanted(size=SIZE, purpose=purpose), folder / f"{purpose}.json")
    return {purpose: folder / f"{purpose}.json" for purpose in LAYOUTS}


@pytest.fixture(scope="module")
def encoder(made) -> Encoder:
    return Encoder.from_file(str(made["albert"]))


def size_of(path: Path) -> int:
    return Encoder.from_file(str(path)).get_vocab_size()


def test_two_processes_make_the_same_bytes(texts, tmp_path):
    for name in ("one", "two"):
        words = ["tokenizer", texts, "--size", str(SIZE), "--out", tmp_path / name]
        done = subprocess.run([sys.executable, "-m", "trainer", *words], capture_output=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_special_tokens_have_the_ids_that_models_expect(made):
    ids = {
        purpose: Encoder.from_file(str(path)).get_vocab(with_added_tokens=True)
        for purpose, path in made.items()
    }
    albert = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    assert [ids["albert"][token] for token in albert] == [0, 1, 2, 3, 4]
    assert [ids["causal"][token] for token in ("<pad>", "<unk>", "<s>", "</s>")] == [0, 1, 2, 3]
    t5 = ids["encoder-decoder"]
    assert [t5[token] for token in ("<pad>", "</s>", "<unk>")] == [0, 1, 2]
    assert t5["<extra_id_0>"] == len(t5) - 1 and t5["<extra_id_99>"] == len(t5) - 100


def test_what_stands_for_hidden_tokens_is_what_the_site_looks_for():
    masks = {layout.special.mask for layout in LAYOUTS.values() if layout.special.mask}
    assert masks == set(HIDING["masked"])


def test_the_engine_finds_each_ones_special_tokens(made):
    loaded = {purpose: Tokenizer(path, size_of(path)) for purpose, path in made.items()}
    albert, causal, both = loaded["albert"], loaded["causal"], loaded["encoder-decoder"]
    assert (albert.pad, albert.start, albert.end, albert.mask) == (0, 2, 3, 4)
    assert (causal.pad, causal.start, causal.end) == (0, 2, 3)
    with pytest.raises(TokenizerError, match="no mask token"):
        _ = causal.mask
    assert (both.pad, both.start, both.end) == (0, None, 1)
    assert both.mask == size_of(made["encoder-decoder"]) - 1
    assert not set(albert.encode(BENGALI[0])) & albert.special


@pytest.mark.parametrize(
    ("purpose", "one", "two"),
    [
        ("albert", "[CLS] … [SEP]", "[CLS] … [SEP] … [SEP]"),
        ("causal", "…", "… …"),
        ("encoder-decoder", "… </s>", "… </s> … </s>"),
    ],
)
def test_special_tokens_are_put_around_texts(made, purpose, one, two):
    encoder = Encoder.from_file(str(made[purpose]))

    def shape(*text: str) -> str:
        found = encoder.encode(*text)
        marks = zip(found.tokens, found.special_tokens_mask, strict=True)
        return " ".join(token if special else "…" for token, special in marks)

    assert shape("1") == one.replace("…", "… …") and shape("1", "2") == two.replace("…", "… …")


def test_c09_batches_hide_no_special_token_of_a_tokenizer_made_here(made):
    tokenizer = Tokenizer(made["albert"], size_of(made["albert"]))
    found = list(batches(EVERYTHING * 20, tokenizer, MASKED, length=32, size=lambda: 8, seed=1))
    ids = torch.cat([batch.ids for batch in found])
    targets = torch.cat([batch.targets for batch in found])
    chosen = targets != Batch.IGNORE
    assert abs(float(chosen.float().mean()) - 0.14) < 0.02  # 15 % of what is not special
    assert not set(targets[chosen].tolist()) & tokenizer.special
    assert int(ids.max()) < tokenizer.num_tokens


def test_digits_stand_alone_punctuation_too_and_words_begin_with_a_mark(encoder):
    pieces = encoder.encode("বাড়ি ১২৫, 2024।", add_special_tokens=False).tokens
    assert "".join(pieces) == "▁বাড়ি▁১২৫,▁2024।"
    for sign in "১২৫2024,।":
        assert sign in pieces
    assert not [p for p in pieces if len(p) > 1 and set(p) & set("১২৫2024,।")]


def test_known_texts_come_back_in_their_normal_form(encoder):
    for text in EVERYTHING:
        assert encoder.decode(encoder.encode(text).ids) == normal_form().normalize_str(text)


SIGNS = ["  ", "\u09df", "\u09c7\u09be", "e\u0301", "☃", "ﬁ", "|", "।।", "\u200b", "\x07"]
TEXTS = st.lists(st.sampled_from([*"".join(EVERYTHING), *SIGNS]), max_size=30).map("".join)
UNSEEN = ("Z", "C")


@settings(max_examples=400, deadline=None)
@given(text=TEXTS)
def test_spans_lead_back_to_all_of_the_original_text_that_can_be_seen(encoder, text):
    found = spans(text, encoder.encode(text))
    assert found == sorted(found) and all(0 <= start <= end <= len(text) for start, end in found)
    covered = {place for start, end in found for place in range(start, end)}
    left_out = "".join(c for place, c in enumerate(text) if place not in covered)
    assert not [c for c in left_out if unicodedata.category(c)[0] not in UNSEEN]


@pytest.mark.parametrize("text", EVERYTHING)
def test_each_span_is_what_its_piece_was_made_from(encoder, text):
    other = unicodedata.normalize("NFD", text)
    for written in (text, other):
        encoding = encoder.encode(written, add_special_tokens=False)
        for piece, (start, end) in zip(encoding.tokens, spans(written, encoding), strict=True):
            own = encoder.normalizer.normalize_str(written[start:end])
            assert own == piece.replace("▁", "") or (own, piece) == (":", "ঃ")


def test_c03_offsets_and_ids_agree_for_both_spellings(encoder):
    found = []
    for word in ("বা\u09dcি", "বা\u09a1\u09bcি"):
        text = f"লাল {word} হ"
        encoded = encoder.encode(text, add_special_tokens=False)
        found.append(encoded.ids)
        inside = [(a, b) for a, b in spans(text, encoded) if a >= 4 and b <= 4 + len(word)]
        assert text[inside[0][0] : inside[-1][1]] == word
    assert found[0] == found[1]
    assert not {"\u09dc", "\u09dd", "\u09df"} & set("".join(encoder.get_vocab()))


PAIRS = [("কল", "কলা", "কলি", "কুল"), ("চাদ", "চাঁদ"), ("কি", "কী"), ("বই", "বউ"), ("ক", "ক্ক")]


def test_c02_vowel_signs_make_different_ids_also_when_transformers_has_loaded_it(made, tmp_path):
    from transformers import AlbertTokenizerFast, AutoTokenizer, PreTrainedTokenizerFast

    file = str(made["albert"])
    fast = PreTrainedTokenizerFast(tokenizer_file=file)
    fast.save_pretrained(tmp_path)
    again = [
        fast,
        PreTrainedTokenizerFast.from_pretrained(tmp_path),
        AutoTokenizer.from_pretrained(tmp_path),
        AlbertTokenizerFast(tokenizer_file=file),
    ]
    ours = Encoder.from_file(file)
    for loaded in again:
        for words in PAIRS:
            ids = [tuple(loaded(word).input_ids) for word in words]
            assert len(set(ids)) == len(words)
            assert ids == [tuple(ours.encode(word).ids) for word in words]


def test_c06_what_is_unknown_has_a_token(made):
    for path in made.values():
        tokenizer = Tokenizer(path, size_of(path))
        for text in ("☃", "漢字", "\x00\x07", "\U0010ffff", "�", ""):
            assert isinstance(tokenizer.encode(text), list)
        shown = preview(path, "☃")
        assert shown["unknown_share"] == 0.5  # the word's mark is known


def test_c06_a_file_that_knows_no_unknown_token_is_refused(made, tmp_path):
    content = json.loads(made["albert"].read_text())
    content["model"]["unk_id"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(TokenizerError, match="no token for unknown characters"):
        Tokenizer(tmp_path / "tokenizer.json", SIZE)


def test_c16_too_little_text_gives_a_smaller_one_and_says_so(tmp_path):
    (tmp_path / "few.txt").write_text("কলা কলি কলা\n")
    found = make(Corpus([tmp_path / "few.txt"]), Wanted(size=32_000), tmp_path / "tokenizer.json")
    size = size_of(tmp_path / "tokenizer.json")
    assert found.size == size < 32
    with pytest.raises(TokenizerError, match=f"has {size} tokens, the recipe says 8"):
        Tokenizer(tmp_path / "tokenizer.json", 8)


def test_a_preview_tells_normal_form_pieces_places_and_shares(made):
    shown = preview(made["albert"], "বা\u09dcি  ☃")
    assert shown["normal"] == "বা\u09a1\u09bcি ☃"
    inner = [token for token in shown["tokens"] if not token["special"]]
    assert [token["special"] for token in (shown["tokens"][0], shown["tokens"][-1])] == [True, True]
    assert shown["num_tokens"] == len(inner)
    assert [token["text"] for token in inner if token["unknown"]] == ["☃"]
    assert shown["characters_per_token"] == pytest.approx(7 / len(inner))


def test_a_preview_needs_none_of_our_special_tokens(tmp_path):
    encoder = Encoder(models.WordLevel({"[UNK]": 0, "কলা": 1}, unk_token="[UNK]"))
    encoder.save(str(tmp_path / "words.json"))
    assert preview(tmp_path / "words.json", "কলা")["unknown_share"] == 0
    assert preview(tmp_path / "words.json", "আম")["unknown_share"] == 1
    train_tokenizer(EVERYTHING, tmp_path / "bytes.json", 300)
    shown = preview(tmp_path / "bytes.json", "☃  x")
    assert (shown["normal"], shown["unknown_share"]) == ("☃  x", 0)
