"""Which part of a page's text is indexed: its main content, or all of it but what is not meant to be (C8).

The text comes with the marks of its regions (``regions``), in document order. All is decided over that, in linear time:
what is cut, and which region is the content. Where too little would be left, less is cut.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from searchcrawl.html import regions
from searchcrawl.html.page_text import collapse_segments
from searchcrawl.html.regions import Marks

#: What only its names call navigation, or a header, is not cut if it has a larger share of the text: it was not closed.
_MOST_NAMED: Final = 0.5
#: What only its names call the content has at least this share of what is not cut.
_LEAST_NAMED_MAIN: Final = 0.6
#: So many characters are content, however many others there are.
_SURELY_ENOUGH: Final = 200
#: Fewer must be this share of all, and if they are at least so many, the least one.
_ENOUGH_CHARACTERS: Final = 40
_ENOUGH_SHARE: Final = 0.1
_LEAST_SHARE: Final = 0.05

# The last characters of marks stand for them: they are cheaper to look up.
_CLOSING_OF: Final = {marks.before[1]: marks.after[1] for marks in regions.ALL}
_CLOSING: Final = {marks.after[1]: marks for marks in regions.ALL}
_ASIDE, _ARTICLE, _MAIN = (marks.after[1] for marks in (regions.ASIDE, regions.ARTICLE, regions.MAIN))
_OFF, _ON = regions.OFF[1], regions.ON[1]
_KINDS: Final = frozenset({*_CLOSING_OF, *_CLOSING, _OFF, _ON})


class PageTexts(NamedTuple):
    """The text that is indexed, and the whole one; they may be the same.

    ``lengths`` are those of the segments between the marks of regions, 0 for those that are not indexed.
    """

    indexed: str
    whole: str
    lengths: Sequence[int] = ()


class _Region(NamedTuple):
    """The segments of the text from ``begin`` up to ``end``."""

    marks: Marks
    begin: int
    end: int


class _Selection:
    """Some segments of a text: ``lengths`` are those of its own, 0 for others."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = lengths
        self._up_to = [0, *accumulate(lengths)]

    @property
    def total(self) -> int:
        """How many characters it has."""
        return self._up_to[-1]

    def weigh(self, region: _Region) -> int:
        """How many of its characters are in a region."""
        return self._up_to[region.end] - self._up_to[region.begin]

    def without(self, found: Sequence[_Region]) -> _Selection:
        """What is in none of the regions."""
        if not found:
            return self
        pairs = zip(self.lengths, self._cover(found), strict=True)
        return _Selection([0 if depth else length for length, depth in pairs])

    def only(self, found: Sequence[_Region]) -> _Selection:
        """What is in any of the regions."""
        pairs = zip(self.lengths, self._cover(found), strict=True)
        return _Selection([length if depth else 0 for length, depth in pairs])

    def is_something(self, of: _Selection) -> bool:
        """Whether it is more than a word of waiting in the place of another."""
        return self.total >= _ENOUGH_CHARACTERS or self.total > of.total * _ENOUGH_SHARE

    def is_enough(self, of: _Selection) -> bool:
        """Whether it may be all that is left of another."""
        return self.total >= _SURELY_ENOUGH or (self.is_something(of) and self.total > of.total * _LEAST_SHARE)

    def _cover(self, found: Sequence[_Region]) -> Iterable[int]:
        """For each segment how many of the regions have it."""
        changes = [0] * (len(self.lengths) + 1)
        for region in found:
            changes[region.begin] += 1
            changes[region.end] -= 1
        changes.pop()
        return accumulate(changes)


def choose_text(marked: str, *, main: bool) -> PageTexts:
    """The texts of a page; ``marked`` has the marks of its blocks, regions and links. ``main``: the main content is indexed."""
    unlinked = marked.replace(regions.LINK_BEGIN, "").replace(regions.LINK_END, "")
    first, *parts = unlinked.split(regions.MARK)
    marks = [part[:1] for part in parts]
    # A mark that is none was in the page.
    segments = collapse_segments(
        [first, *(part[1:] if mark in _KINDS else part for part, mark in zip(parts, marks, strict=True))]
    )
    whole = "\n".join(filter(None, segments))
    if len(segments) == 1:
        return PageTexts(whole, whole, (len(whole),))
    found = _find_regions(marks)
    selected = _Selection([*map(len, segments)])
    selected = selected.without([region for region in found if region.marks is regions.DROPPED])
    shown = selected.without([region for region in found if region.marks is regions.HIDDEN])
    # A page that hides next to all of it has a script that shows it.
    selected = shown if shown.is_something(selected) else selected
    kept = [region for region in found if region.marks is regions.KEPT]
    if kept:
        selected = selected.only(kept)
    elif main:
        selected = _select_main(selected, found)
    text = "\n".join([segment for segment, length in zip(segments, selected.lengths, strict=True) if length])
    return PageTexts(text, whole, selected.lengths)


def _find_regions(marks: Sequence[str]) -> list[_Region]:
    """The regions between marks; the one number n is between the segments n and n + 1.

    A region that is not closed before the one around it is none: its mark may be of the page's own text.
    """
    found: list[_Region] = []
    opened: list[tuple[str, int]] = []
    open_of = dict.fromkeys(_CLOSING, 0)
    off: int | None = None
    for segment, mark in enumerate(marks, 1):
        if (ends := _CLOSING_OF.get(mark)) is not None:
            opened.append((ends, segment))
            open_of[ends] += 1
        elif mark in open_of:
            if not open_of[mark]:
                continue
            last, begin = "", 0
            while last != mark:
                last, begin = opened.pop()
                open_of[last] -= 1
            # A header in an article is that of the article.
            if mark != _ASIDE or not (open_of[_ARTICLE] or open_of[_MAIN]):
                found.append(_Region(_CLOSING[mark], begin, segment))
        elif mark == _OFF:
            off = segment if off is None else off
        elif mark == _ON and off is not None:
            found.append(_Region(regions.DROPPED, off, segment))
            off = None
    if off is not None:
        found.append(_Region(regions.DROPPED, off, len(marks) + 1))
    return found


def _select_main(everything: _Selection, found: Sequence[_Region]) -> _Selection:
    """The main content of what may be indexed."""
    mains = [region for region in found if region.marks is regions.MAIN]
    cut = _leave_out_around(mains, [region for region in found if region.marks is regions.CUT])
    content = everything.without(cut)
    named = [region for region in found if region.marks is regions.NAMED_CUT or region.marks is regions.ASIDE]
    named = [region for region in named if content.weigh(region) <= content.total * _MOST_NAMED]
    content = content.without(_leave_out_around(mains, named))
    inner = content.only(mains) if mains else None
    if not _is_enough_left(content, inner, everything, mains):
        return everything
    inner = _select_named(content, found) if inner is None else inner
    return inner if inner is not None and inner.is_enough(content) else content


def _is_enough_left(
    content: _Selection, inner: _Selection | None, everything: _Selection, mains: Sequence[_Region]
) -> bool:
    """Whether what is left of a page, ``content``, may be all of it; ``inner`` is that of its ``mains``."""
    # What a page keeps apart from its main content, which has some text, says nothing of that.
    if inner is not None and inner.total >= _ENOUGH_CHARACTERS:
        return inner.total >= _SURELY_ENOUGH or inner.is_enough(everything.only(mains))
    return content.is_enough(everything)


def _leave_out_around(mains: Sequence[_Region], cut: Sequence[_Region]) -> list[_Region]:
    """Those of the regions that have no main content in them."""
    if not mains:
        return list(cut)
    begins = sorted(region.begin for region in mains)
    return [region for region in cut if bisect_left(begins, region.begin) == bisect_left(begins, region.end)]


def _select_named(content: _Selection, found: Sequence[_Region]) -> _Selection | None:
    """The smallest region that its names call the content, and that has most of it."""
    least = content.total * _LEAST_NAMED_MAIN
    large = [region for region in found if region.marks is regions.NAMED_MAIN and content.weigh(region) >= least]
    return content.only([min(large, key=content.weigh)]) if large else None
