"""Tokenizers on the site: one is made of its texts, and a page shows what it does with a text."""

from __future__ import annotations

import gzip
import threading

import pytest
from django.core.management import CommandError, call_command
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

from tests.trainer.bengali import BENGALI
from tests.web.filled import filled as filled_draft
from tests.web.makings import add_text, claimed
from trainer.tokenizing import Wanted
from webapp.artifacts.models import Artifact, Kind
from webapp.artifacts.services import register_file
from webapp.artifacts.storage import absolute_path
from webapp.audit.models import Entry
from webapp.core.jobs import State
from webapp.tokenizers.models import Making
from webapp.tokenizers.program import do

PAGE = "/console/tokenizers/"


def filled(text: Artifact, **changes) -> dict:
    steps = ["clean", "nfkc", "spaces", "nukta", "vowels", "danda", "accents"]
    usual = {"title": "Bengali", "size": "400", "purpose": "albert", "texts": [text.pk]}
    return usual | {"steps": steps} | changes


def test_only_organisers_may_look_and_act(client, alice, text):
    making = claimed(text)
    paths = ["", "1/", f"making/{making.pk}/", f"making/{making.pk}/progress/"]
    for path in paths:
        assert "/accounts/login/" in client.get(f"{PAGE}{path}").url
    client.force_login(alice)
    for path in paths:
        assert client.get(f"{PAGE}{path}").status_code == 403
    for act in ("", "1/", f"making/{making.pk}/cancel/"):
        assert client.post(f"{PAGE}{act}").status_code == 403
    assert Making.objects.count() == 1


def test_a_tokenizer_is_made_tried_and_offered_for_collaborations(
    client, olga, text, django_capture_on_commit_callbacks
):
    client.force_login(olga)
    with django_capture_on_commit_callbacks(execute=True):
        made = client.post(PAGE, filled(text))
    making = Making.objects.get()
    assert made.url == f"{PAGE}making/{making.pk}/"
    assert making.state == State.FINISHED, making.reason
    tokenizer = making.artifact
    assert (tokenizer.kind, tokenizer.title) == (Kind.TOKENIZER, "Bengali")
    known = Tokenizer.from_file(str(absolute_path(tokenizer.path)))
    assert known.get_vocab_size() == tokenizer.vocab_size == making.made["size"]
    page = client.get(made.url).text
    assert "75" in page and "a colon after a Bengali letter is a visarga" in page
    offered = client.get("/console/create/").context["form"].fields["tokenizer"].choices
    assert tokenizer.sha256 in [value for value, _ in offered]
    assert "Bengali" in client.get(PAGE).text
    shown = client.post(f"{PAGE}{tokenizer.pk}/", {"text": f"{BENGALI[0]}  ☃ দু:খ"})
    assert shown.context["shown"]["normal"] == f"{BENGALI[0]} ☃ দু:খ"
    for words in ("unknown", "[CLS]", "How it was made", "Characters per token"):
        assert words in shown.text
    assert Entry.objects.filter(action="tokenizer.started", actor=olga).count() == 1


def test_pieces_that_nobody_sees_are_named(client, olga, tmp_path):
    path = tmp_path / "tokenizer.json"
    known = Tokenizer(
        WordLevel({"<unk>": 0, "a": 1, "\u200d": 2, "\u200b": 3, "b\u200c": 4}, "<unk>")
    )
    known.pre_tokenizer = Split("|", "removed")
    known.save(str(path))
    tokenizer = register_file(path, Kind.TOKENIZER, vocab_size=5)
    client.force_login(olga)
    page = client.post(f"{PAGE}{tokenizer.pk}/", {"text": "a|\u200d|\u200b|b\u200c"}).text
    assert "<bdi>\u200d</bdi><small>ZWJ</small>" in page
    assert "<bdi>\u200b</bdi><small>U+200B</small>" in page
    assert "<bdi>b\u200c</bdi><small>ZWNJ</small>" in page
    assert '<bdi>a</bdi><small class="num">1' in page


def test_c16_a_model_that_guesses_hidden_tokens_gets_no_tokenizer_without_one(
    client, olga, text, tmp_path
):
    client.force_login(olga)
    made, other = {}, add_text(tmp_path, "other.txt", "held out\n")
    for purpose in ("albert", "causal"):
        do(claimed(text, purpose=purpose), threading.Event())
        made[purpose] = Making.objects.latest("pk").artifact

    def post(purpose: str, family: str = "albert"):
        chosen = {"tokenizer": made[purpose], "text": text, "held_out": other}
        data = filled_draft(chosen, family=family).data
        return client.post("/console/create/", {k: v for k, v in data.items() if v != ""})

    assert "has no token that stands for what is hidden" in post("causal").text
    assert "choose a tokenizer made for T5" in post("albert", "encoder_decoder").text
    assert post("albert").url == "/console/c/night-shift/"


def test_the_page_says_what_is_missing_and_what_comes(client, olga):
    client.force_login(olga)
    page = client.get(PAGE).text
    assert "None yet." in page and "manage.py add_file text FILE" in page
    assert 'name="purpose"' not in page


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"title": ""}, "This field is required"),
        ({"texts": []}, "This field is required"),
        ({"size": "100"}, "greater than or equal to 256"),
        ({"purpose": "poetry"}, "not one of the available choices"),
        ({"steps": ["lower"]}, "not one of the available choices"),
    ],
)
def test_a_form_that_makes_no_sense_starts_nothing_and_says_why(client, olga, text, changes, words):
    client.force_login(olga)
    page = client.post(PAGE, filled(text, **changes)).text
    assert words in page and "Nothing was started yet" in page and not Making.objects.exists()


def test_another_like_it_is_filled_in_as_that_one(client, olga, text):
    client.force_login(olga)
    making = claimed(text, size=777, purpose="causal", without=("accents",))
    form = client.get(f"{PAGE}?like={making.pk}").context["form"]
    assert form["size"].value() == 777 and form["purpose"].value() == "causal"
    assert "accents" not in form["steps"].value() and "danda" in form["steps"].value()


def test_too_many_that_wait_are_refused(client, olga, text):
    client.force_login(olga)
    plan = Wanted().model_dump(mode="json")
    Making.objects.bulk_create(Making(title="One", plan=plan) for _ in range(20))
    assert "are waiting already" in client.post(PAGE, filled(text)).text


def test_a_preview_of_a_damaged_or_missing_file_says_so(client, olga, tmp_path):
    client.force_login(olga)
    (tmp_path / "tokenizer.json").write_text("{")
    broken = register_file(tmp_path / "tokenizer.json", Kind.TOKENIZER, title="Odd", vocab_size=9)
    asked = {"text": "words"}
    assert "is not a tokenizer" in client.post(f"{PAGE}{broken.pk}/", asked).text
    absolute_path(broken.path).unlink()
    assert "not on the site&#x27;s disk" in client.post(f"{PAGE}{broken.pk}/", asked).text
    assert "This field is required" in client.post(f"{PAGE}{broken.pk}/", {"text": ""}).text
    assert (
        "at most 5000 characters" in client.post(f"{PAGE}{broken.pk}/", {"text": "x" * 9999}).text
    )


def test_files_are_added_by_whoever_runs_the_site(db, tmp_path):
    (tmp_path / "poem.txt").write_text("বর্ষা\n")
    call_command("add_file", "text", str(tmp_path / "poem.txt"), credit="me", verbosity=0)
    found = Artifact.objects.get()
    assert (found.kind, found.title, found.credit) == (Kind.TEXT, "poem.txt", "me")
    with pytest.raises(CommandError, match="it is no tokenizer"):
        call_command("add_file", "tokenizer", str(tmp_path / "poem.txt"))
    (tmp_path / "empty.txt").touch()
    with pytest.raises(CommandError, match="it is empty"):
        call_command("add_file", "text", str(tmp_path / "empty.txt"))
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        call_command("add_file", "text", str(tmp_path / "nothing.txt"))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("poems.txt", b"PK\x03\x04" + b"poem\n" * 99, "is a zip archive: unpack it, or pack"),
        ("poems.tar", b"a" * 257 + b"ustar" + b"\0" * 600, "is a tar archive: unpack it, and name"),
        (
            "poems.gz",
            gzip.compress(gzip.compress(b"poem", mtime=0), mtime=0),
            "is packed twice: unpack it once",
        ),
        ("poems", "poem\n".encode("utf-16"), "is UTF-16: save it as UTF-8"),
        ("poems.parquet", b"poem\n", "is called .parquet, and does not begin like one"),
        ("poems.txt", b"\n \n" * 999, "poems.txt has no text"),
        ("poems.gz", gzip.compress(b"\n" * 999, mtime=0), "poems.gz has no text"),
    ],
)
def test_what_is_no_text_to_train_on_is_not_added(db, tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CommandError, match=says) as refused:
        call_command("add_file", "text", str(tmp_path / name))
    assert str(refused.value).startswith(str(tmp_path / name))
    assert not Artifact.objects.exists()


def test_a_text_that_begins_with_many_blank_lines_is_added(db, tmp_path):
    (tmp_path / "poems.txt").write_text("\n" * 5000 + "poem\n")
    call_command("add_file", "text", str(tmp_path / "poems.txt"), verbosity=0)
    assert Artifact.objects.get().filename == "poems.txt"


def test_the_kinds_of_files_are_named_as_they_are_written(tmp_path):
    with pytest.raises(CommandError, match="invalid choice: 'tokenizr'") as refused:
        call_command("add_file", "tokenizr", str(tmp_path / "poem.txt"))
    assert "text" in str(refused.value) and "Kind." not in str(refused.value)
