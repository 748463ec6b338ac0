"""Files that nobody meant as texts, or that Windows wrote, are left out in words."""

from __future__ import annotations

import os
import struct
import tracemalloc

import pyarrow
import pyarrow.parquet
import pytest

from trainer.launcher import own_texts
from trainer.launcher.place import Unusable
from trainer.sources.base import MAX_LINE_BYTES
from trainer.sources.formats import Unreadable, read
from trainer.sources.private import PrivateSource


def parquet(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_rows_of_parquet_that_python_has_no_value_for_are_broken_and_the_others_are_read(tmp_path):
    ends = pyarrow.py_buffer(struct.pack("<4i", 0, 3, 4, 7))
    texts = pyarrow.Array.from_buffers(
        pyarrow.string(), 3, [None, ends, pyarrow.py_buffer(b"one\xfftwo")]
    )
    assert list(read(parquet(tmp_path / "a.parquet", text=texts))) == ["one", None, "two"]
    far = pyarrow.array([2**31 - 1], pyarrow.date32())
    rows = parquet(tmp_path / "b.parquet", prompt=["a"], input=far, output=["b"])
    assert list(read(rows)) == [None]


@pytest.mark.parametrize("name", ["x.txt", "x.jsonl", "x.csv"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-be"])
def test_what_windows_calls_unicode_is_left_out_and_not_trained_on_as_noise(
    tmp_path, name, encoding
):
    text = "\ufefftext\nhello\n" if encoding.endswith("be") else "text\nhello\n"
    (tmp_path / name).write_bytes(text.encode(encoding))
    with pytest.raises(Unreadable, match="save it as UTF-8"):
        list(read(tmp_path / name))


def test_pipes_and_devices_among_the_files_are_left_out(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    (tmp_path / "notes.txt").write_text("a note\n")
    source = PrivateSource(tmp_path)
    assert list(source.all()) == ["a note"]
    assert set(source.left_out.values()) == {"it is no ordinary file"}


def test_a_folder_that_may_not_be_read_is_told_and_not_passed_over(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "notes.txt").write_text("a note\n")
    look = os.scandir

    def scandir(path):
        if os.fspath(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return look(path)

    monkeypatch.setattr(os, "scandir", scandir)
    source = PrivateSource(tmp_path)
    assert list(source.all()) == ["a note"]
    assert source.left_out == {tmp_path / "closed": "this folder may not be read by you"}


@pytest.mark.parametrize("name", ["x.txt", "x.csv"])
def test_a_line_without_an_end_is_not_held_whole(tmp_path, name):
    with (tmp_path / name).open("wb") as file:
        file.write(b"text\n")
        for _ in range(8):
            file.write(b"x" * MAX_LINE_BYTES)
        file.write(b"\nafter\n")
    tracemalloc.start()
    try:
        assert list(read(tmp_path / name))[-2:] == [None, "after"]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5 * MAX_LINE_BYTES


@pytest.mark.parametrize("named", ["~nobody-of-this-name/notes", "x" * 5000, "no\0where"])
def test_a_place_that_no_system_knows_is_refused_in_words(named):
    with pytest.raises(Unusable, match="cannot be read"):
        own_texts.usable(named)
