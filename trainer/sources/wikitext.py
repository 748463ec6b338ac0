"""Plain text of wikitext, by a few rules; each takes time in proportion to the text.

What a rule finds unclosed is left as it is: only its marks go, in the end.
"""

from __future__ import annotations

import html
import re
from collections.abc import Set as AbstractSet

ASIDE = frozenset(("file", "image", "media", "category"))  # namespaces whose links are no text
DEEPEST = 6  # links in captions of files in captions
# Elements whose content is no running text.
NO_TEXT = (
    "ref", "gallery", "math", "chem", "timeline", "imagemap", "score", "hiero", "graph",
    "syntaxhighlight", "source", "templatedata", "mapframe", "maplink", "style", "table",
)  # fmt: skip


def _pairs(opening: str, closing: str) -> re.Pattern[str]:
    return re.compile(f"(?P<open>{opening})|{closing}", re.MULTILINE)


NAMES = f"(?i:{'|'.join(NO_TEXT)})"
COMMENTS = _pairs("<!--", "-->")
ALONE = re.compile(rf"<{NAMES}\b[^<>]*+(?<=/)>")
ELEMENTS = _pairs(rf"<{NAMES}\b[^<>]*+>", rf"</{NAMES}\s*+>")
TEMPLATES = _pairs(r"\{\{", r"\}\}")
TABLES = _pairs(r"^[ \t:]*+\{\|", r"^[ \t]*+\|\}")
EXTERNAL = re.compile(r"\[(?:https?:|ftp:)?//[^\s\[\]]++[ \t]*+([^\[\]\n]*+)\]")
LINK = re.compile(r"\[\[([^\[\]]*+)\]\]")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]+)*")
TAGS = re.compile(r"</?[a-zA-Z][^<>]*+>")
LEFT_MARKS = re.compile(r"'{2,5}|__[A-Z]{3,30}__|\{\{|\}\}|\[\[|\]\]|<!--|-->")
EMPTY_BRACKETS = re.compile(r"[ ]?\([\s;,:]*+\)")
SPACES = re.compile(r"[ \t\u00a0]+")


def plain(text: str, aside: AbstractSet[str] = ASIDE) -> str:
    """The words of an article, a line for each paragraph, heading and item of a list.

    `aside`: the names of the namespaces of files and categories in this wiki, in small letters.
    """
    text = without(text, COMMENTS)
    text = ALONE.sub("", text)
    text = without(text, ELEMENTS)
    text = without(text, TEMPLATES)
    text = without(text, TABLES) if "{|" in text else text
    text = EXTERNAL.sub(r"\1", text)
    text = links(text, aside)
    text = TAGS.sub("", text)
    text = LEFT_MARKS.sub("", text)
    text = html.unescape(text)
    text = EMPTY_BRACKETS.sub("", text)
    return laid_out(SPACES.sub(" ", text))


def without(text: str, pairs: re.Pattern[str]) -> str:
    """Without what stands between an opening and its closing, and what stands in that."""
    opened: list[int] = []
    found: list[tuple[int, int]] = []
    for mark in pairs.finditer(text):
        if mark["open"]:
            opened.append(mark.start())
        elif opened:
            start = opened.pop()
            while found and found[-1][0] > start:
                found.pop()
            found.append((start, mark.end()))
    kept, place = [], 0
    for start, end in found:
        kept.append(text[place:start])
        place = end
    return "".join(kept) + text[place:]


def links(text: str, aside: AbstractSet[str]) -> str:
    """The words of links, from within outwards; nothing of files, categories and other wikis."""
    for _ in range(DEEPEST):
        text, count = LINK.subn(lambda link: _words(link[1], aside), text)
        if not count:
            break
    return text


def _words(inside: str, aside: AbstractSet[str]) -> str:
    target, bar, label = inside.partition("|")
    space, colon, _ = target.partition(":")
    if colon and space.strip().lower() in aside:
        return ""
    if colon and not bar and LANGUAGE.fullmatch(space.strip()):
        return ""
    return label.rpartition("|")[2] if bar else target.removeprefix(":")


def laid_out(text: str) -> str:
    """Lines without the marks of lists; a heading only where something stands under it."""
    found: list[str] = []
    headings: list[tuple[int, str]] = []
    for line in map(str.strip, text.split("\n")):
        level = len(line) - len(line.lstrip("="))
        if level and line.endswith("=") and line.strip("= "):
            headings = [one for one in headings if one[0] < level]
            headings.append((level, line.strip("= ")))
            continue
        line = line.lstrip("*#:; ")
        if any(map(str.isalnum, line)):
            found += [*(words for _, words in headings), line]
            headings = []
    return "\n".join(found)
