"""Ends tags that have too many attributes, which a parser compares with each other (X-R13).

Whether a ``<`` begins a tag only a parser knows: a comment, a script or a value may hide it, or seem to. So each one is
taken for the beginning of a tag, and what follows is read in all ways at once, state by state as a tokenizer would.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from functools import cache, reduce
from operator import or_
from typing import Final

#: More than a tag of any real page has.
MAX_ATTRIBUTES: Final = 1_000
#: A parser compares a new name with others; so many take a tenth of a second.
MAX_NAMES: Final = 10_000

# Where a tokenizer may be inside a tag (HTML standard, 13.2.5): in its name; before, in and after the name of an
# attribute; before a value, and in one of each kind.
_TAG, _BEFORE, _NAME, _AFTER, _VALUE, _BARE, _DOUBLE, _SINGLE = (1 << bit for bit in range(8))
_QUOTED: Final = _DOUBLE | _SINGLE
# Where each kind of token leads: from a tag's name, from before a name, and so on. 0: out of the tag.
_MOVES: Final = {
    "blank": (_BEFORE, _BEFORE, _AFTER, _AFTER, _VALUE, _BEFORE, _DOUBLE, _SINGLE),
    "slash": (_BEFORE, _BEFORE, _BEFORE, _BEFORE, _BARE, _BARE, _DOUBLE, _SINGLE),
    "equals": (_TAG, _NAME, _VALUE, _VALUE, _BARE, _BARE, _DOUBLE, _SINGLE),
    "double": (_TAG, _NAME, _NAME, _NAME, _DOUBLE, _BARE, _BEFORE, _SINGLE),
    "single": (_TAG, _NAME, _NAME, _NAME, _SINGLE, _BARE, _DOUBLE, _BEFORE),
    "end": (0, 0, 0, 0, 0, 0, _DOUBLE, _SINGLE),
    "other": (_TAG, _NAME, _NAME, _NAME, _BARE, _BARE, _DOUBLE, _SINGLE),
}
# A tag begins with the last two, wherever they stand.
_MOVES["start"], _MOVES["closing"] = _MOVES["other"], _MOVES["slash"]
_OPENS: Final = dict.fromkeys(("double", "single", "other", "start"), _BEFORE | _AFTER) | {"equals": _BEFORE}
_CLOSES: Final = frozenset({"blank", "slash", "closing", "equals", "end"})
_TOKEN: Final = re.compile(
    r"""(?P<blank>[\t\n\f\r ]+)|(?P<start><(?=[a-zA-Z]))|(?P<closing>(?<=<)/(?=[a-zA-Z]))|(?P<slash>/)|(?P<equals>=)"""
    r"""|(?P<double>")|(?P<single>')|(?P<end>>)|(?P<other><|[^\t\n\f\r /="'><]+)"""
)
_TEXT: Final = r"(?>[^<]++|<(?!/?[a-zA-Z]))"
# Tags in a value have no attributes: otherwise what follows has more readings than one.
_QUOTABLE: Final = r"""<(?!/?[a-zA-Z])|</?[a-zA-Z][^\t\n\f\r /<>"'=]*+>"""
_ATTRIBUTE: Final = (
    r"""[\t\n\f\r /]++([^\t\n\f\r /<>"'=]++)(?>[\t\n\f\r ]*+=[\t\n\f\r ]*+"""
    rf"""(?:"(?>[^"<]++|{_QUOTABLE})*+"(?=[\t\n\f\r />])|'(?>[^'<]++|{_QUOTABLE})*+'(?=[\t\n\f\r />])"""
    r"""|[^\t\n\f\r <>"'=]++|(?=>)))?+"""
)
# A tag of which there is but one reading, with up to so many attributes.
_PLAIN_TAG: Final = rf"(</?[a-zA-Z][^\t\n\f\r /<>]*+)(?>{_ATTRIBUTE}){{0,%d}}+[\t\n\f\r /]*+>"
_ATTRIBUTES: Final = re.compile(_ATTRIBUTE)
_TAGS: Final = re.compile(rf"</?[a-zA-Z][^\t\n\f\r /<>]*+((?>{_ATTRIBUTE.replace('([^', '(?:[^', 1)})++)")
_TEXTS: Final = re.compile(f"{_TEXT}*+")
#: What ends a tag, and no comment.
_END: Final = " >"


def end_long_tags(text: str, *, most: int = MAX_ATTRIBUTES, names: int | None = None) -> str:
    """``text`` with tags of at most ``most`` attributes; what is beyond becomes text.

    With ``names``, it has at most so many names of attributes as well.
    """
    places = [0, *_find_ends(text, most, names)]
    if len(places) == 1:
        return text
    parts = (text[start:end] for start, end in zip(places, [*places[1:], len(text)], strict=True))
    return _END.join(parts)


def _find_ends(text: str, most: int, names: int | None) -> Iterator[int]:
    """Where tags are to be ended."""
    place, known = 0, set[str]()
    # Expressions read what is plain in a tenth of the time.
    tag = re.compile(_PLAIN_TAG % most)
    plain = re.compile(f"(?>{_TEXT}|{tag.pattern})*+")
    while place < len(text):
        end = plain.match(text, place).end()  # type: ignore[union-attr]  # it matches everywhere
        if names is not None and not _note(_find_names(text, place, end), known, names):
            yield from _end_tags(text, place, end, tag, known, names)
        place = yield from _read_tags(text, end, most, names, known)


def _end_tags(text: str, place: int, end: int, tag: re.Pattern[str], known: set[str], names: int) -> Iterator[int]:
    """Where plain tags are to be ended that have too many names."""
    while place < end:
        place = _TEXTS.match(text, place).end()  # type: ignore[union-attr]  # it matches everywhere
        match = tag.match(text, place, end)
        if match is None:
            return
        if not _note(_ATTRIBUTES.findall(text, match.end(1), match.end()), known, names):
            yield match.end(1)
        place = match.end()


def _find_names(text: str, place: int, end: int) -> list[str]:
    """The names of attributes of plain tags; of tags that are alike once."""
    return _ATTRIBUTES.findall(">".join(set(_TAGS.findall(text, place, end))))


def _note(found: Iterable[str], known: set[str], names: int) -> bool:
    """Notes names of attributes; False, and notes none, if there were more than ``names`` then."""
    new = {name for name in found if name not in known}
    if len(known) + len(new) > names:
        return False
    known |= new
    return True


def _read_tags(text: str, start: int, most: int, names: int | None, known: set[str]) -> Generator[int, None, int]:
    """Reads from ``start`` to where no tokenizer can be in a tag; yields where tags are to be ended, and returns the end.

    ``states`` are all that a tokenizer may be in. The counters are the most attributes that the tag may have, by whether a
    quoted value is open.
    """
    tables = _build_tables()
    states, began, outside, double, single = 0, start, 0, 0, 0
    for match in _TOKEN.finditer(text, start):
        kind = match.lastgroup or ""
        if names is not None and states & _NAME and kind in _CLOSES:
            name = text[began : match.start()]
            if name not in known and not _note([name], known, names):
                states &= _QUOTED
                yield began
        if states & _OPENS.get(kind, 0):
            began = match.start()
            outside += 1
            if outside > most:
                states &= _QUOTED
                yield began
        if kind == "double":
            outside, double = _max_if(states, _DOUBLE, outside, double), _max_if(states, _VALUE, double, outside)
        elif kind == "single":
            outside, single = _max_if(states, _SINGLE, outside, single), _max_if(states, _VALUE, single, outside)
        states = tables[kind][states]
        if not states & ~_QUOTED:
            outside = 0
        if kind in {"start", "closing"}:
            states |= _TAG
        elif not states:
            return match.end()
    return len(text)


def _max_if(states: int, state: int, count: int, other: int) -> int:
    return max(count, other) if states & state else count


@cache
def _build_tables() -> dict[str, list[int]]:
    """For each kind of token: where it leads from each set of states."""
    return {
        kind: [
            reduce(or_, (state for bit, state in enumerate(moves) if states >> bit & 1), 0) for states in range(1 << 8)
        ]
        for kind, moves in _MOVES.items()
    }
