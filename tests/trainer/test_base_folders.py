"""A folder that is not all of a base, or not what it says, is refused before anybody fetches it."""

from __future__ import annotations

import json
import shutil
import struct

import pytest

from tests.trainer.tiny_bases import adapt, make_learner
from trainer.bases import NotABase, describe
from trainer.commands import main


@pytest.fixture
def folder(base_of, tmp_path):
    return shutil.copytree(base_of("gpt2"), tmp_path / "base")


def write(folder, name, content):
    (folder / name).write_text(json.dumps(content))


def test_weights_that_were_not_fetched_to_their_end_are_refused(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(NotABase, match=r"model\.safetensors is cut off"):
        describe(folder)


def test_a_folder_without_a_file_that_its_index_names_is_refused(folder):
    write(folder, "model.safetensors.index.json", {"weight_map": {"w": "model-2.safetensors"}})
    assert describe(folder)  # nobody looks at the index
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    with pytest.raises(NotABase, match=r"model-2\.safetensors, which .* names, is not in"):
        describe(folder)
    write(folder, "model.safetensors.index.json", {"metadata": {}})
    with pytest.raises(NotABase, match="does not say which file has what"):
        describe(folder)


@pytest.mark.parametrize(
    ("shape", "offsets"), [(["a"], [0, 4]), (5, [0, 4]), ([1], 4), ([1], [0, None])]
)
def test_a_header_that_describes_no_tensors_is_refused(folder, shape, offsets):
    tensor = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
    header = json.dumps({"h.0.weight": tensor}).encode()
    content = struct.pack("<Q", len(header)) + header + b"1234"
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(NotABase, match="is no safetensors file"):
        describe(folder)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", r"tokenizer_config\.json is damaged"),
        ("{", r"tokenizer_config\.json is no JSON"),
        ('{"eos_token": {"id": 1}}', "Input should be a valid string"),
    ],
)
def test_a_tokenizers_words_that_cannot_be_read_are_refused(folder, content, words):
    (folder / "tokenizer_config.json").write_text(content)
    with pytest.raises(NotABase, match=words):
        describe(folder)


def test_a_base_is_loaded_without_words_and_bars_across_the_volunteers_screen(
    folder, capfd, recwarn
):
    config = json.loads((folder / "config.json").read_text())
    write(folder, "config.json", config | {"bos_token_id": 50256, "eos_token_id": 50256})
    make_learner(adapt(folder, "gpt2"), folder)
    assert capfd.readouterr() == ("", "")
    assert not [one for one in recwarn if "fan_in_fan_out" in str(one.message)]


def test_the_command_says_in_one_line_what_is_wrong(folder, capsys):
    assert main(["base", str(folder), "--at", "not a place"]) == 1
    assert capsys.readouterr().err == (
        "This is no base: a base of kind 'hub' cannot be at 'not a place'.\n"
    )
    with pytest.raises(SystemExit):
        main(["base", str(folder), "--site", "--at", "org/name"])
    assert "not allowed with" in capsys.readouterr().err
