"""Markup without nesting, for pages whose tree would take too long to build: text, links and fields stay (X-R13)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from searchcrawl.html.page_text import BLOCK_MARK

#: Blocks get a mark before and after them, items only before them: after an item comes another one, or its parent ends.
BLOCKS: Final = (
    "address article aside blockquote body center dd details dialog dir div dl fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hgroup hr legend main menu nav ol p pre search section summary table ul"
)
ITEMS: Final = "br caption dt li option optgroup tbody td tfoot th thead tr select textarea"

# Elements that a parser never nests: void ones, those whose content is text, and ``a``, which closes the one before.
_FLAT_NAMES: Final = (
    "a area base br frame head hr iframe img input link meta noembed noframes noscript plaintext script style textarea "
    "title wbr xmp"
)
# Elements that nest but matter to what is read: contents that are not shown, frames and forms.
_KEPT_NAMES: Final = "body button form frameset html optgroup option select template"
_KEPT: Final = frozenset(_KEPT_NAMES.split())
_ALLOWED: Final = frozenset(_FLAT_NAMES.split()) | _KEPT
#: So many of them stay: the time for a tree is the number of its tags times its depth.
_MAX_KEPT: Final = 1_000
_ROOTS: Final = frozenset({"html", "body"})
#: The attributes of all html and body tags go to one element, each compared with all that it has.
MAX_ROOTS: Final = 6
_BREAKS: Final = frozenset(BLOCKS.split()) | {f"/{name}" for name in BLOCKS.split()} | frozenset(ITEMS.split())

# The name that a parser reads after "<", whatever it takes the place for. Frequent tags that may stay are passed over,
# which saves time: an end tag opens nothing.
_NAME: Final = re.compile(
    r"<(?!a[ >]|/(?:a|b|code|dt|em|i|li|s(?:cript|pan|trong)|td|tr)>)(/?[a-zA-Z][^\t\n\x0c\r />]*+)"
)
# An end tag that no element has: a parser ignores it with its attributes.
_NOTHING: Final = "</wbr"


def flatten(text: str) -> str:
    """``text`` with only such start tags as cannot nest, or are few.

    It changes names alone, wherever one may stand: what a comment, a script or a value is, only a parser knows for
    sure, and a page that was made to take long would hide its tags where this took them for none.
    """
    parts = _NAME.split(text)
    names = parts[1::2]
    counts = Counter(names)
    new = {name: _rename(name) for name in counts}
    names = [new[name] for name in names]
    for plain, allowed in ((_KEPT, _MAX_KEPT), (_ROOTS, MAX_ROOTS)):
        found = {tag for tag in new.values() if tag[1:].lower() in plain}
        if sum(count for name, count in counts.items() if new[name] in found) > allowed:
            _drop_further(names, found, plain, allowed)
    parts[1::2] = names
    return "".join(parts)


def _drop_further(written: list[str], found: set[str], plain: frozenset[str], allowed: int) -> None:
    """Leaves the first ``allowed`` of the start tags ``found``, which have such names, among all that are ``written``.

    Where one goes, and where its element would end, a mark keeps the texts apart.
    """
    for place in [place for place, tag in enumerate(written) if tag in found][allowed:]:
        written[place] = BLOCK_MARK + _NOTHING
    for place, tag in enumerate(written):
        if tag[:2] == "</" and tag[2:].lower() in plain:
            written[place] = BLOCK_MARK + tag


def _rename(name: str) -> str:
    """What replaces ``<name``: itself where it is allowed, or an end tag without an element, after a mark for a block."""
    _, cut, last = name.rpartition("<")
    if cut:
        # A parser takes all of it for one name, but in a script it may be two.
        return _rename(last) if last[:1].isascii() and last[:1].isalpha() else f"<{last}"
    plain = name.lower() if name.isascii() else ""
    if plain.removeprefix("/") in _ALLOWED:
        return f"<{name}"
    return BLOCK_MARK + _NOTHING if plain in _BREAKS else _NOTHING
