"""Packed bytes, unpacked as they are read: gzip, bzip2, xz and zstd, told by their first bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

from trainer.sources.base import Torn

BUFFER_BYTES = 256 * 1024
ZSTD_AT_ONCE = 512  # what one reading holds is lost where the stream breaks off in it


def _zstd(raw: BinaryIO) -> Callable[[int], bytes]:
    from pyarrow import CompressedInputStream, PythonFile

    stream = CompressedInputStream(PythonFile(raw, mode="r"), "zstd")
    return lambda count: bytes(stream.read(min(count, ZSTD_AT_ONCE)))


# Each gives a function that reads what is there, so that nothing before the damage is lost.
KINDS: dict[bytes, Callable[[Any], Callable[[int], bytes]]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw).read1,
    b"BZh": lambda raw: bz2.BZ2File(raw).read1,
    b"\xfd7zXZ\x00": lambda raw: lzma.LZMAFile(raw).read1,  # noqa: SIM115 - of the one who reads
    b"\x28\xb5\x2f\xfd": _zstd,
}
LONGEST_MAGIC = max(map(len, KINDS))


def is_packed(first: bytes) -> bool:
    return first.startswith(tuple(KINDS))


def unpacked(raw: BinaryIO) -> BinaryIO:
    """What is in a stream that is at its beginning; a stream that is not packed as it is.

    Reading raises Torn where the packed bytes break off or make no sense.
    """
    first = raw.read(LONGEST_MAGIC)
    raw.seek(0)
    for magic, read in KINDS.items():
        if first.startswith(magic):
            return io.BufferedReader(_Unpacked(raw, read(raw)), BUFFER_BYTES)
    return raw


class _Unpacked(io.RawIOBase):
    def __init__(self, raw: BinaryIO, read: Callable[[int], bytes]) -> None:
        self._raw, self._read = raw, read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        from pyarrow import ArrowException

        try:
            found = self._read(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError, ArrowException) as error:
            if getattr(error, "errno", None):  # of the disk
                raise
            raise Torn(str(error) or type(error).__name__) from error
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._raw.close()
        super().close()
