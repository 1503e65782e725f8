"""What readers are fed: any bytes, soups of their grammar, mutated pages of the test site, and pieces that are repeated."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.reach import Place, Reach
from tests.readers.declaring import NUMBER, Reader
from tests.site.content import read_stage

_MAX_PIECES: Final = 40
_LONGEST_SEED: Final = 20_000
_LONGEST_PIECE: Final = 64
_MAX_EDITS: Final = 8


@cache
def real_pages() -> tuple[bytes, ...]:
    """The pages of the test site that are not too long, each once: HTML, text, PDF, robots files, sitemaps."""
    bodies = dict.fromkeys(page.body for page in read_stage("base", 80).values() if len(page.body) <= _LONGEST_SEED)
    return tuple(body for body in bodies if body)


@cache
def patterns_of(reader: Reader) -> tuple[re.Pattern[str] | re.Pattern[bytes], ...]:
    """The expressions of modules that a reader meets."""
    found = []
    for place in Reach([Place(reader.read.__module__, reader.name)]).places:
        if place.module.startswith("searchcrawl."):
            value = getattr(importlib.import_module(place.module), place.name.partition(".")[0], None)
            found += [value] if isinstance(value, re.Pattern) and _is_quick(value) else []
    return tuple(sorted(set(found), key=lambda pattern: (len(pattern.pattern), str(pattern.pattern))))


def _is_quick(pattern: re.Pattern[str] | re.Pattern[bytes]) -> bool:
    """Whether it names no letters of large alphabets: of these it takes seconds to choose some."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return "\\u" not in source and max(source, default="") <= "\xff"


@st.composite
def matches(draw: st.DrawFn, reader: Reader) -> bytes:
    """What an expression that the reader meets matches, cut anywhere: what nearly matches takes longest."""
    text = draw(st.sampled_from(patterns_of(reader)).flatmap(_match))
    return text[draw(st.integers(0, 4)) : draw(st.integers(1, _LONGEST_PIECE))]


def _match(pattern: re.Pattern[str] | re.Pattern[bytes]) -> SearchStrategy[bytes]:
    source, flags = pattern.pattern, pattern.flags
    if isinstance(source, bytes):
        # The library knows no expressions for bytes without regard to case.
        source, flags = source.decode("latin-1"), flags | re.ASCII
    texts = st.from_regex(re.compile(source, flags), alphabet=st.characters(max_codepoint=255))
    return texts.map(lambda text: text.encode("latin-1" if isinstance(pattern.pattern, bytes) else "utf-8"))


def pieces_of(reader: Reader) -> SearchStrategy[bytes]:
    """Pieces of the grammar of a reader: declared ones most often, some of its expressions, some of any bytes."""
    declared = st.sampled_from(reader.pieces)
    several = [declared] * 6 + ([matches(reader)] if patterns_of(reader) else []) + [st.binary(min_size=1, max_size=3)]
    return st.one_of(several)


def soups(reader: Reader) -> SearchStrategy[bytes]:
    """Pieces in any order."""
    return st.lists(pieces_of(reader), max_size=_MAX_PIECES).map(lambda pieces: number(b"".join(pieces)))


@st.composite
def mutated_pages(draw: st.DrawFn, reader: Reader) -> bytes:
    """A real page with some places changed: cut out, doubled, overwritten, or with pieces and parts of others put in."""
    body = draw(st.sampled_from(real_pages()))
    for _ in range(draw(st.integers(1, _MAX_EDITS))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.sampled_from([0, 1, 2, 10, 100, 1_000])))
        other = draw(st.sampled_from(real_pages()))
        put = draw(st.one_of(pieces_of(reader), st.just(b""), st.just(body[start:end] * 2), st.just(other[start:end])))
        body = body[:start] + put + body[end:]
    return number(body)


def inputs(reader: Reader) -> SearchStrategy[bytes]:
    """All that a reader may be given."""
    return st.one_of(soups(reader), mutated_pages(reader), st.binary(max_size=200))


def number(text: bytes) -> bytes:
    """``text`` with a number for each NUMBER."""
    first, *others = text.split(NUMBER)
    return first + b"".join(b"%d%s" % (index, part) for index, part in enumerate(others))


@dataclass(frozen=True)
class Growing:
    """Inputs of any size: pieces that are repeated, one kind after the other, with something before and after them."""

    before: bytes
    repeated: tuple[bytes, ...]
    after: bytes

    def build(self, size: int) -> bytes:
        """The input of about so many bytes."""
        share = size // len(self.repeated)
        return self.before + b"".join(_repeat(piece, share) for piece in self.repeated) + self.after


def _repeat(piece: bytes, size: int) -> bytes:
    if NUMBER not in piece:
        return (piece * (size // len(piece) + 1))[:size]
    made, length = [], 0
    for index in count():
        made.append(piece.replace(NUMBER, b"%d" % index))
        length += len(made[-1])
        if length >= size:
            break
    return b"".join(made)


@st.composite
def growing(draw: st.DrawFn, reader: Reader) -> Growing:
    """Inputs that grow, of the grammar of a reader."""
    pieces = pieces_of(reader)

    def join(most: int, least: int = 0) -> bytes:
        return b"".join(draw(st.lists(pieces, min_size=least, max_size=most)))

    repeated = tuple(join(3, 1) or b" " for _ in range(draw(st.sampled_from([1, 1, 2]))))
    return Growing(number(join(3)), repeated, number(join(2)))
