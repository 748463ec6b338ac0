"""Dumps of a MediaWiki (`…-pages-articles.xml.bz2`): one document for each article.

A dump is cut at its page tags, which cannot be in a text, and each page is parsed by itself. So a
damaged page costs itself, memory is one page, and no entity is ever known but those of XML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple
from xml.etree import ElementTree

from trainer.sources.base import Tally
from trainer.sources.wikitext import ASIDE, plain

MAX_PAGE_BYTES = 8 * 2**20
MAX_HEAD_BYTES = 2**20
READ_BYTES = 256 * 1024
PAGE, END = b"<page>", b"</page>"
ASIDE_NAMESPACES = re.compile(rb'<namespace key="(?:6|14)"[^<>]*>([^<]+)</namespace>')


def begins_dump(first: bytes) -> bool:
    """Whether a dump begins with these bytes."""
    return first.startswith((b"<mediawiki", b"<?xml")) and b"<mediawiki" in first


class Page(NamedTuple):
    """`content`: between the tags; of one that is too long its beginning, of a torn one nothing."""

    at: int
    content: bytes


class WikiPages:
    """`aside`: what this wiki calls its namespaces of files and categories, in small letters."""

    def __init__(self) -> None:
        self._aside = ASIDE

    def items(self, stream: BinaryIO) -> Iterator[Page]:
        cutter = _Cutter(stream)
        head = cutter.take(PAGE, MAX_HEAD_BYTES)
        if head is None:
            return
        names = (name.decode(errors="replace") for name in ASIDE_NAMESPACES.findall(head))
        self._aside = ASIDE | {name.lower() for name in names}
        while True:
            at = cutter.at
            content = cutter.take(END, MAX_PAGE_BYTES + 1)
            torn, _, whole = (content or b"").rpartition(PAGE)
            if torn or content is None:
                yield Page(at, b"")
            if content is None:
                return
            yield Page(at, whole)
            if cutter.take(PAGE, 0) is None:
                return

    def document(self, item: Page, tally: Tally, where: str) -> str | None:
        tally.long += len(item.content) > MAX_PAGE_BYTES
        text = None
        try:
            page = ElementTree.fromstring(PAGE + item.content + END)  # noqa: S314 - no DTD in it
        except ElementTree.ParseError:
            page = None
        if page is not None and len(page):
            if not _is_article(page):
                tally.left_out += 1
                return None
            text = plain(page.findall("revision/text")[-1].text or "", self._aside)
        tally.count(text, f"byte {item.at} of {where}")
        return text


def _is_article(page: ElementTree.Element) -> bool:
    """In the main namespace, in wikitext, and not only a way to another."""
    return (
        page.findtext("ns", "0") == "0"
        and page.find("redirect") is None
        and page.findtext("revision/model", "wikitext") == "wikitext"
        and page.find("revision/text") is not None
    )


class _Cutter:
    """A stream taken from one mark to the next."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._left = stream, b""
        self.at = 0

    def take(self, mark: bytes, limit: int) -> bytes | None:
        """What comes before `mark`, and on past it; of more than `limit` bytes the first ones.

        None when the end comes first.
        """
        parts: list[bytes] = []
        room = limit
        while (place := self._left.find(mark)) < 0:
            border = max(len(self._left) - len(mark) + 1, 0)
            parts.append(self._left[: min(border, room)])
            room -= len(parts[-1])
            self._left = self._left[border:]
            self.at += border
            more = self._stream.read1(READ_BYTES)  # type: ignore[attr-defined]
            if not more:
                return None
            self._left += more
        parts.append(self._left[: min(place, room)])
        self._left = self._left[place + len(mark) :]
        self.at += place + len(mark)
        return b"".join(parts)
