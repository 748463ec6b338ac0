"""People's words in Markdown and YAML: shown as they are written, whatever signs are in them."""

from __future__ import annotations

import json

from django import template

from webapp.core.text import one_line

register = template.Library()
LONGEST = 500
# Of Markdown as hubs read it, of HTML, and what makes addresses and mentions into links.
SIGNS = {sign: f"&#{ord(sign)};" for sign in "\\`*_{}[]<>#+!|~&:@$^=\"'"}
WORDS = {"www.": "www&#46;", "WWW.": "WWW&#46;"}


@register.filter
def md(value: object) -> str:
    """One line of plain text, wherever but at the beginning of a line."""
    text = "".join(SIGNS.get(letter, letter) for letter in one_line(str(value), LONGEST))
    for word, safe in WORDS.items():
        text = text.replace(word, safe)
    return text


@register.filter
def yaml(value: object) -> str:
    """A double-quoted scalar: what JSON writes is one, for characters that can be printed."""
    return json.dumps(one_line(str(value), LONGEST), ensure_ascii=False)
