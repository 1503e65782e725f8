"""The headings and defined terms of the main text of a page (G1): ``h1`` to ``h4`` and ``dt``.

While the tree is walked, each gets a mark before its text; it comes out at the beginning of its line in the text that is
indexed. So no page is parsed or walked once more, and what is not indexed is no heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from selectolax.lexbor import LexborNode

from searchcrawl.html import regions, tags
from searchcrawl.html.page_text import BLOCK_MARK, cut_words
from searchcrawl.html.regions import HEADING_MARK, HEADING_SIGN, KIND_OF_HEADING, KIND_OF_NAMED, NAME_END

#: So many headings of a page are kept, so many characters of all of them, and so many of each.
MOST_HEADINGS: Final = 200
MOST_CHARACTERS: Final = 8_000
_MOST_OF_HEADING: Final = 120
#: So many that name a page may stand around its content.
_MOST_AROUND: Final = 3
#: Ids of more characters are no names.
_MOST_OF_NAME: Final = 120
#: Links of headings to themselves, as they are written at their end.
_SIGNS: Final = "¶§🔗⚓\uf0c1"
_UNCLEAN: Final = frozenset(_SIGNS)
_NAMING: Final = KIND_OF_HEADING["h1"]
_PLAIN: Final = frozenset(KIND_OF_NAMED)
#: What comes after a sign: the kind, the number of a name, and the text of the heading, which may begin with a block.
_MARKED: Final = re.compile(rf"(?:([123])|([456])([0-9]{{1,9}}){NAME_END})\n?([^\n]*)")
#: What separates the blocks before a heading says whether it is a main one (``main_text``).
_BLOCK_BEFORE: Final = {"h1": regions.HEADING, "h2": regions.SUBHEADING, "h3": regions.SUBHEADING}
_BEFORE: Final = {tag: f"{_BLOCK_BEFORE.get(each, BLOCK_MARK)}{HEADING_SIGN}" for tag, each in tags.HEADINGS.items()}
_MARKS: Final = {tag: f"{_BEFORE[tag]}{KIND_OF_HEADING[each]}".encode() for tag, each in tags.HEADINGS.items()}
_BLOCK_MARK: Final = BLOCK_MARK.encode()
# The methods for bytes alone, as in ``page``.
_insert_before: Final = LexborNode.insert_before[bytes]  # type: ignore[index]
_insert_after: Final = LexborNode.insert_after[bytes]  # type: ignore[index]


class Headings(NamedTuple):
    """The headings of a page: the first ``naming`` of them are such as name it."""

    texts: tuple[str, ...] = ()
    naming: int = 0


def mark_heading(node: LexborNode, tag: int, names: list[str]) -> None:
    """Puts a mark before a heading or a defined term; its id goes to ``names`` where it is a dotted name."""
    name = node.id
    if name and "." in name and _is_dotted_name(name):
        kind = KIND_OF_NAMED[KIND_OF_HEADING[tags.HEADINGS[tag]]]
        _insert_before(node, f"{_BEFORE[tag]}{kind}{len(names)}{NAME_END}".encode())
        names.append(name)
    else:
        _insert_before(node, _MARKS[tag])
    if tag != tags.DT:
        # After a term comes another item, or its list ends.
        _insert_after(node, _BLOCK_MARK)


def _is_dotted_name(text: str) -> bool:
    """Whether an id is one that a generator of references gives a definition: ``django.db.models.query.QuerySet.filter``."""
    parts = text.split(".") if len(text) <= _MOST_OF_NAME else []
    return len(parts) > 1 and all(map(str.isidentifier, parts))


def remove_marks(text: str) -> str:
    """The text without the marks of headings, and without the lines that have nothing else."""
    if HEADING_SIGN not in text:
        return text
    return _join_bare(text, text.split(HEADING_SIGN))


def take_headings(text: str, names: Sequence[str]) -> tuple[str, Headings]:
    """The text that is indexed without the marks, and its headings, each once.

    Those come first that name the page (``h1``, ``h2``), then names with their terms. A page that writes marks itself has none.
    """
    if HEADING_SIGN not in text:
        return text, Headings()
    parts = text.split(HEADING_SIGN)
    bare = _join_bare(text, parts)
    naming: list[str] = []
    named: list[str] = []
    others: list[str] = []
    for part in islice(parts, 1, None):
        found = _MARKED.match(part)
        if found is None:
            return bare, Headings()
        kind, of_named, number, heading = found.groups()
        if heading[-1:] in _UNCLEAN or len(heading) > _MOST_OF_HEADING:
            heading = _clean(heading)
        if kind == _NAMING:
            naming.append(heading)
        elif kind is not None:
            others.append(heading)
        else:
            named += names[int(number) : int(number) + 1]
            (naming if of_named == KIND_OF_NAMED[_NAMING] else named).append(heading)
    naming = [each for each in dict.fromkeys(naming) if each]
    kept = _keep((*naming, *named, *others))
    return bare, Headings(kept, min(len(naming), len(kept)))


def add_names(headings: Headings, whole: str) -> Headings:
    """The headings of a page that has none that names it, with the first of its whole text, as those that stand before its content.

    Doxygen has the heading of a page there.
    """
    _, around = take_headings(whole, ())
    names = around.texts[: min(around.naming, _MOST_AROUND)]
    return Headings(_keep((*names, *headings.texts)), len(names))


def _join_bare(text: str, parts: Sequence[str]) -> str:
    """A text, whose ``parts`` signs separate, without the marks, and without the lines that have nothing else."""
    rests = [part[1:] for part in islice(parts, 1, None) if part[:1] in _PLAIN]
    if len(rests) < len(parts) - 1:
        # Names have numbers, and a page may write this character itself.
        bare = HEADING_MARK.sub("", text)
        return "\n".join(filter(None, bare.split("\n")))
    bare = "".join((parts[0], *[rest[1:] if rest[:1] == "\n" else rest for rest in rests]))
    return bare if rests[-1] else bare.removesuffix("\n")


def _clean(text: str) -> str:
    """The text of a heading."""
    if text[-1:] in _UNCLEAN:
        text = text.rstrip(_SIGNS).rstrip()
    return cut_words(text, _MOST_OF_HEADING)


def _keep(texts: Iterable[str]) -> tuple[str, ...]:
    """The first of the texts, each once, within the limits."""
    kept: dict[str, None] = {}
    characters = 0
    for text in texts:
        if text and text not in kept:
            characters += len(text)
            if characters > MOST_CHARACTERS or len(kept) == MOST_HEADINGS:
                break
            kept[text] = None
    return tuple(kept)
