"""Which part of a page's text is indexed: its main content, or all of it but what is not meant to be (C8).

The text comes with the marks of its regions (``regions``), in document order. All is decided over that, in linear time:
what is cut, and which region is the content. Names and landmarks propose; how much of a region is no text of links decides: links have
marks around them, those to other pages and those to a place of the page itself.
Where too little would be left, less is cut, and that is noted.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final, NamedTuple

from searchcrawl.html import regions
from searchcrawl.html.page_text import BLOCK_MARK, collapse_segments
from searchcrawl.html.regions import LINK_BEGIN, LINK_END, LOCAL, Marks
from searchcrawl.items import Fallback, FallbackReason

_LINK: Final = re.compile(f"{LINK_BEGIN}[^{LINK_END}]*")
#: What a link to the heading in which it stands consists of; other signs may be what a page is about, such as operators.
_SIGNS: Final = frozenset({"", *"¶§#◆∞⚓☍🔗", "🔗\ufe0e", "🔗\ufe0f", "[link]", "[#]"})
_LONGEST_SIGN: Final = 8


def count_linked(segment: str) -> int:
    """How many characters of a segment are in links; with one for each, for what separates it from the next one."""
    return len(" ".join("".join(_LINK.findall(segment)).split())) if LINK_BEGIN in segment else 0


def unite_links(marked: str) -> tuple[str, str]:
    """The text of a page with the same marks around all links, and with those around links to other pages alone.

    Both are without the text of links such as "¶", which lead to the heading in which they stand.
    """
    parts = marked.split(LOCAL)
    most = _LONGEST_SIGN + len(LINK_BEGIN + LINK_END)
    links = ["" if len(link) <= most and link[1:-1].strip() in _SIGNS else link for link in parts[1::2]]
    parts[1::2] = links
    united = "".join(parts)
    parts[1::2] = [link[1:-1] for link in links]
    return united, "".join(parts)


#: A region with more characters of its own has something to say, whatever its names call it, unless more are those of links.
_FEW_OWN: Final = 100
#: What is called navigation may have so many, and a landmark has no content if it has no more characters at all.
_FEW_OWN_OF_NAV: Final = 250
_FEW_OF_LANDMARK: Final = 400
#: The own characters of so many segments are counted for a region alone: those of all segments take longer.
_FEW_SEGMENTS: Final = 4
#: So many lines at each end of a text may be rows of links, in so many characters.
_LINES_OF_END: Final = 4
_MOST_OF_END: Final = 1_000
#: So many regions are covered one by one, each at once; more of them may be nested, each in all others.
_FEW_REGIONS: Final = 20
#: What has a link for so many characters, or for fewer, has hardly anything else; more of what calls itself navigation.
_FEWEST_CHARACTERS_A_LINK: Final = 20
_CHARACTERS_A_LINK: Final = {regions.CUT: 60, regions.NAMED_NAV: 40}
#: What only its names call navigation, or a header, is not cut if it has a larger share of the text: it was not closed.
_MOST_NAMED: Final = 0.5
#: A part with so many is content beside what a page names so.
_MUCH_OWN: Final = 400
#: A header with more links is that of the site.
_LINKS_OF_HEADING: Final = 2
#: Few links have more characters.
_MOST_OF_LINK: Final = 40
#: Fewer characters that are in no link do not tell where the content is, nor what is one.
_FEWEST_OWN: Final = 10
#: What only its names call the content has at least this share of what is not cut.
_LEAST_NAMED_MAIN: Final = 0.6
#: What is hidden is content if it has more characters, and is more than this share of the rest: a script shows it.
_FEW_HIDDEN: Final = 60
_MOST_HIDDEN: Final = 0.05
#: The content has at least one of so many parts of what is in no link.
_LEAST_PARTS: Final = 3
#: So many characters are content, however many others there are.
_SURELY_ENOUGH: Final = 200
#: Fewer must be this share of all, and if they are at least so many, the least one.
_ENOUGH_CHARACTERS: Final = 40
_ENOUGH_SHARE: Final = 0.1
_LEAST_SHARE: Final = 0.05
_LEAST_SHARE_WITH_HEADING: Final = 0.025

# The last characters of marks stand for them: they are cheaper to look up.
_CLOSING_OF: Final = {marks.before[1]: marks.after[1] for marks in regions.ALL}
_CLOSING: Final = {marks.after[1]: marks for marks in regions.ALL}
_ARTICLE, _MAIN = (marks.after[1] for marks in (regions.ARTICLE, regions.MAIN))
_OF_ARTICLES: Final = frozenset(marks.after[1] for marks in (regions.ASIDE, regions.FOOTER))
_OFF, _ON, _HEADING = regions.OFF[1], regions.ON[1], regions.HEADING[1]
_HEADINGS: Final = frozenset({_HEADING, regions.SUBHEADING[1]})
_KINDS: Final = frozenset({*_CLOSING_OF, *_CLOSING, _OFF, _ON, *_HEADINGS})
_FOOTERS: Final = (regions.FOOTER, regions.NAMED_FOOTER)
_OWN: Final = frozenset((regions.MENU, regions.ASIDE))
_LANDMARKS: Final = (*_FOOTERS, regions.ASIDE)
_PROPOSED: Final = (*_LANDMARKS, regions.NAMED_NAV, regions.NAMED_CUT, regions.MENU)


class PageTexts(NamedTuple):
    """The text that is indexed, and the whole one; they may be the same.

    ``lengths`` are those of the segments between the marks of regions, 0 for those that are not indexed. ``fallback`` says
    that the main content was not taken as it was found.
    """

    indexed: str
    whole: str
    lengths: Sequence[int] = ()
    fallback: Fallback | None = None


class _Chosen(NamedTuple):
    """What is taken for the main content, and why it is other text than the page says."""

    content: _Selection
    fallback: Fallback | None = None


class _Region(NamedTuple):
    """The segments of the text from ``begin`` up to ``end``."""

    marks: Marks
    begin: int
    end: int


#: The regions of a page, those of each kind in document order of their ends.
_Found = Mapping[Marks, Sequence[_Region]]


class _Words:
    """The segments of a text with their marks: what of them is in links is counted when it is asked for."""

    def __init__(self, marked: str, lengths: Sequence[int]) -> None:
        self._marked = marked
        self._lengths = lengths
        self._own: dict[int, int] = {}

    @cached_property
    def _segments(self) -> Sequence[str]:
        return self._marked.split(regions.MARK)

    @cached_property
    def all_links(self) -> int:
        """How many links there are."""
        return self._marked.count(regions.LINK_BEGIN)

    @cached_property
    def links(self) -> Sequence[int]:
        """How many links begin in each segment."""
        return [segment.count(regions.LINK_BEGIN) for segment in self._segments]

    def count_own(self, number: int) -> int:
        """How many characters of a segment are in no link."""
        own = self._own.get(number)
        if own is None:
            own = self._own[number] = max(self._lengths[number] - count_linked(self._segments[number]), 0)
        return own


class _Selection:
    """Some segments of a text: ``lengths`` are those of its own, 0 for others."""

    def __init__(self, lengths: Sequence[int], words: _Words) -> None:
        self.lengths = lengths
        self._words = words
        self._up_to = list(accumulate(lengths, initial=0))

    @cached_property
    def _own_up_to(self) -> Sequence[int]:
        count = self._words.count_own
        return [0, *accumulate([count(number) if length else 0 for number, length in enumerate(self.lengths)])]

    @cached_property
    def _links_up_to(self) -> Sequence[int]:
        pairs = zip(self.lengths, self._words.links, strict=True)
        return [0, *accumulate([links if length else 0 for length, links in pairs])]

    @property
    def total(self) -> int:
        """How many characters it has."""
        return self._up_to[-1]

    @property
    def own(self) -> int:
        """How many of them are in no link."""
        return self._own_up_to[-1]

    def weigh(self, region: _Region) -> int:
        """How many of its characters are in a region."""
        return self._up_to[region.end] - self._up_to[region.begin]

    def weigh_between(self, begin: int, end: int) -> int:
        """How many of its characters are in the segments from ``begin`` up to ``end``."""
        return self._up_to[end] - self._up_to[begin]

    def weigh_own(self, region: _Region) -> int:
        """How many of its characters are in a region, but in no link."""
        if region.end - region.begin <= _FEW_SEGMENTS:
            count = self._words.count_own
            return sum([count(number) for number in range(region.begin, region.end) if self.lengths[number]])
        return self._own_up_to[region.end] - self._own_up_to[region.begin]

    def count_links(self, region: _Region) -> int:
        """How many links begin in its part of a region."""
        return self._links_up_to[region.end] - self._links_up_to[region.begin]

    def is_full_of_links(self, region: _Region) -> bool:
        """Whether a region has so many links that hardly anything else can be in it."""
        characters = _CHARACTERS_A_LINK.get(region.marks, _FEWEST_CHARACTERS_A_LINK)
        return self.count_links(region) * characters >= self.weigh(region)

    def is_surely_most(self, region: _Region) -> bool:
        """Whether a region has most of what is in no link, if links have no more characters than nearly all have."""
        weight, least = self.weigh(region), self.total * _LEAST_NAMED_MAIN
        return weight >= least and weight - self.count_links(region) * _MOST_OF_LINK >= least

    def is_surely_less(self, region: _Region) -> bool:
        """Whether a region has too little of it for that, likewise."""
        most = self.weigh(region) / _LEAST_NAMED_MAIN
        # The links of the whole page are faster to count.
        return (
            most < self.total - self._words.all_links * _MOST_OF_LINK
            or most < self.total - self._links_up_to[-1] * _MOST_OF_LINK
        )

    def says_little(self, region: _Region) -> bool:
        """Whether a region has few characters of its own, or more that are those of links."""
        weight = self.weigh(region)
        few = _FEW_OWN_OF_NAV if region.marks is regions.NAMED_NAV else _FEW_OWN
        if weight <= few or self.is_full_of_links(region):
            return True
        # Without links all is its own; to count it takes time.
        return self.count_links(region) > 0 and ((own := self.weigh_own(region)) <= few or own * 2 <= weight)

    def without(self, found: Sequence[_Region]) -> _Selection:
        """What is in none of the regions."""
        return self._select(found, inside=False) if found else self

    def only(self, found: Sequence[_Region]) -> _Selection:
        """What is in any of the regions."""
        return self._select(found, inside=True)

    def _select(self, found: Sequence[_Region], *, inside: bool) -> _Selection:
        if len(found) > _FEW_REGIONS:
            pairs = zip(self.lengths, self._cover(found), strict=True)
            return _Selection([length if bool(depth) is inside else 0 for length, depth in pairs], self._words)
        lengths = [0] * len(self.lengths) if inside else [*self.lengths]
        for region in found:
            begin, end = region.begin, region.end
            lengths[begin:end] = self.lengths[begin:end] if inside else [0] * (end - begin)
        return _Selection(lengths, self._words)

    def has_most_of(self, content: _Selection) -> bool:
        """Whether next to nothing is in the content but not in this, or nothing but links."""
        return content.total - self.total <= _FEW_OWN or self.own >= content.own * _LEAST_NAMED_MAIN

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
    # Each list is in the place of the one before: a text may be large.
    parts = marked.replace(regions.LINK_BEGIN, "").replace(regions.LINK_END, "").split(regions.MARK)
    marks = [part[:1] for part in parts[1:]]
    # A mark that is none was in the page.
    parts[1:] = [part[1:] if mark in _KINDS else part for part, mark in zip(parts[1:], marks, strict=True)]
    segments = collapse_segments(parts)
    del parts
    whole = "\n".join(filter(None, segments))
    if len(segments) == 1:
        return PageTexts(_leave_out_bars(whole, marked) if main else whole, whole, (len(whole),))
    found = _find_regions(marks)
    lengths = [*map(len, segments)]
    selected = _Selection(lengths, _Words(marked, lengths))
    selected = selected.without(found.get(regions.DROPPED, ()))
    selected = _leave_out_hidden(selected, found.get(regions.HIDDEN, ()))
    fallback = None
    if kept := found.get(regions.KEPT):
        selected = selected.only(kept)
    elif main:
        selected, fallback = _select_main(selected, found, marks)
    if selected.total == sum(lengths):
        # A text may be large: no second one.
        text = whole
    else:
        text = "\n".join([segment for segment, length in zip(segments, selected.lengths, strict=True) if length])
    if main and not kept:
        text = _leave_out_bars(text, marked)
    return PageTexts(text, whole, selected.lengths, fallback)


def _find_regions(marks: Sequence[str]) -> _Found:
    """The regions between marks; the one number n is between the segments n and n + 1.

    A region that is not closed before the one around it is none: its mark may be of the page's own text.
    """
    found: defaultdict[Marks, list[_Region]] = defaultdict(list)
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
            if mark not in _OF_ARTICLES or not (open_of[_ARTICLE] or open_of[_MAIN]):
                kind = _CLOSING[mark]
                found[kind].append(_Region(kind, begin, segment))
        elif mark == _OFF:
            off = segment if off is None else off
        elif mark == _ON and off is not None:
            found[regions.DROPPED].append(_Region(regions.DROPPED, off, segment))
            off = None
    if off is not None:
        found[regions.DROPPED].append(_Region(regions.DROPPED, off, len(marks) + 1))
    return found


def _leave_out_hidden(everything: _Selection, hidden: Sequence[_Region]) -> _Selection:
    """What a page shows, and what a script is to show: what says something of its own, or is much of the page."""
    if not hidden:
        return everything
    shown = everything.without([region for region in hidden if everything.says_little(region)])
    if not shown.is_something(everything) or everything.total - shown.total > max(
        _FEW_HIDDEN, shown.total * _MOST_HIDDEN
    ):
        return everything
    return shown


def _select_main(everything: _Selection, found: _Found, marks: Sequence[str]) -> _Chosen:
    """The main content of what may be indexed."""
    if not found:
        return _Chosen(_leave_out_before_heading(everything, marks))
    mains = found.get(regions.MAIN, ())
    cut = [
        region
        for region in found.get(regions.CUT, ())
        if everything.weigh(region) <= _FEW_OF_LANDMARK or everything.says_little(region)
    ]
    content = everything.without(_leave_out_around(mains, cut))
    proposed = _leave_out_around(mains, [region for kind in _PROPOSED for region in found.get(kind, ())])
    fallback = _doubt(everything, content, mains, proposed) if mains else None
    if fallback is not None:
        mains = ()
    around = mains or _find_named(content, found)
    inner = content.only([*around, *_find_beside(content, around, found)]) if around else None
    if inner is not None:
        inner = inner.without(_choose_cut(inner, _leave_out_own(inner, proposed, marks)))
        if inner.total >= _SURELY_ENOUGH or (
            (not mains or inner.has_most_of(content)) and _is_whole(inner, everything.only(around), marks)
        ):
            return _Chosen(inner, fallback)
    content = content.without(_choose_cut(content, proposed))
    # What a page keeps apart from its main content, which has some text, says nothing of that.
    left = inner if inner is not None and inner.total >= _ENOUGH_CHARACTERS else content
    if not left.is_enough(everything.only(around) if left is inner else everything):
        return _Chosen(everything, _note(FallbackReason.UNCUT, left, everything) or fallback)
    if mains and inner is not None:
        if inner.is_enough(content):
            return _Chosen(inner)
        return _Chosen(content, _note(FallbackReason.MAIN, inner, content))
    if inner is None and (around := _find_named(content, found)):
        inner = content.only([*around, *_find_beside(content, around, found)])
    if inner is not None and inner.is_something(content):
        return _Chosen(inner, fallback)
    return _Chosen(_leave_out_before_heading(content, marks), fallback)


def _note(reason: FallbackReason, left: _Selection, of: _Selection) -> Fallback | None:
    """That something was not taken, with what would have been left of what; None where that would have been all."""
    return Fallback(reason, left.total, of.total) if left.total < of.total else None


def _doubt(
    everything: _Selection, content: _Selection, mains: Sequence[_Region], proposed: Sequence[_Region]
) -> Fallback | None:
    """That what a page declares its content has less than a third of what has no other name, links aside."""
    if max(map(everything.weigh, mains)) * _LEAST_PARTS >= content.total:
        return None
    inner, rest = everything.only(mains), content.without(proposed)
    if inner.total * _LEAST_PARTS < rest.total and inner.own * _LEAST_PARTS < rest.own:
        return _note(FallbackReason.MAIN, inner, rest)
    return None


def _is_whole(inner: _Selection, around: _Selection, marks: Sequence[str]) -> bool:
    """Whether what is left of the content, ``around``, may be all of it: with a heading it may be short."""
    if inner.is_enough(around):
        return True
    headings = [number for number, mark in enumerate(marks, 1) if mark in _HEADINGS]
    return inner.total > around.total * _LEAST_SHARE_WITH_HEADING and any(inner.lengths[number] for number in headings)


def _choose_cut(content: _Selection, proposed: Sequence[_Region]) -> list[_Region]:
    """Those of the regions that only their names, or such elements as headers, call no content, and that look like it."""
    left, end = content.total, len(content.lengths)
    cut: list[_Region] = []
    weighed = [(-region.end, region.begin, region, weight) for region in proposed if (weight := content.weigh(region))]
    # Those that end last come first: what is left without footers says how much of it the others are.
    for _, begin, region, weight in sorted(weighed):
        if cut and begin >= cut[-1].begin:
            continue
        is_last = content.weigh_between(region.end, max(end, region.end)) <= _ENOUGH_CHARACTERS
        is_navigation = content.says_little(region) and (
            weight <= left * _MOST_NAMED or content.is_full_of_links(region)
        )
        if is_navigation or (region.marks in _FOOTERS and is_last and content.weigh_between(0, begin) >= _FEWEST_OWN):
            cut.append(region)
            left -= weight
            end = min(end, begin) if is_last else end
    return cut


def _leave_out_own(content: _Selection, proposed: Sequence[_Region], marks: Sequence[str]) -> list[_Region]:
    """Those of the regions that are not the content's own.

    Its own are menus below a heading, as those that list what a chapter has, and the header that has its main heading.
    """
    kinds = {region.marks for region in proposed}
    if kinds.isdisjoint(_OWN):
        return list(proposed)
    shown = [number for number, mark in enumerate(marks, 1) if mark in _HEADINGS and content.lengths[number]]
    first = shown[0] if shown else len(marks)
    main = next((number for number in shown if marks[number - 1] == _HEADING), len(marks) + 1)
    return [
        region
        for region in proposed
        if not (region.marks is regions.MENU and region.begin >= first)
        and not (
            region.marks is regions.ASIDE
            and region.begin <= main < region.end
            and content.count_links(region) <= _LINKS_OF_HEADING
        )
    ]


def _leave_out_around(mains: Sequence[_Region], cut: Sequence[_Region]) -> list[_Region]:
    """Those of the regions that have no main content in them."""
    if not mains or not cut:
        return list(cut)
    if len(mains) == 1:
        begin = mains[0].begin
        return [region for region in cut if not region.begin <= begin < region.end]
    begins = sorted(region.begin for region in mains)
    return [region for region in cut if bisect_left(begins, region.begin) == bisect_left(begins, region.end)]


def _find_named(content: _Selection, found: _Found) -> list[_Region]:
    """The smallest region that its names call the content and that has most of it, links aside; none where there is none."""
    for region in sorted(found.get(regions.NAMED_MAIN, ()), key=content.weigh):
        if content.is_surely_most(region):
            return [region]
        if content.is_surely_less(region) or content.own < _FEWEST_OWN:
            continue
        if content.weigh_own(region) >= content.own * _LEAST_NAMED_MAIN:
            return [region]
    return []


def _find_beside(content: _Selection, around: Sequence[_Region], found: _Found) -> list[_Region]:
    """What stands beside the content that a page names and has so much of its own that it cannot be left out for that."""
    if content.total - sum(map(content.weigh, around)) < _MUCH_OWN:
        return []
    long = [number for number, length in enumerate(content.lengths) if length >= _MUCH_OWN]
    if not long:
        return []
    inside = content.only([*around, *(region for kind in _LANDMARKS for region in found.get(kind, ()))])
    parts = [_Region(regions.NAMED_MAIN, number, number + 1) for number in long if not inside.lengths[number]]
    return [part for part in parts if not content.says_little(part) and content.weigh_own(part) >= _MUCH_OWN]


def _leave_out_before_heading(content: _Selection, marks: Sequence[str]) -> _Selection:
    """What is left without the few words, links among them, that stand before the first main heading."""
    if _HEADING not in marks:
        return content
    heading = marks.index(_HEADING) + 1
    before = _Region(regions.CUT, 0, heading)
    weight = content.weigh(before)
    if not weight or not content.lengths[heading]:
        return content
    own = content.weigh_own(before) if weight <= 3 * _FEW_OWN and content.count_links(before) else weight
    return content.without([before]) if own < weight and own <= _FEW_OWN else content


def _leave_out_bars(text: str, marked: str) -> str:
    """A text without the rows of links that stand at its beginning and at its end alike, whatever their elements are."""
    half = min(len(text) // 2, _MOST_OF_END)
    first = set(text[:half].split("\n", _LINES_OF_END)[:_LINES_OF_END])
    last = text[len(text) - half :].rsplit("\n", _LINES_OF_END)[-_LINES_OF_END:]
    if first.isdisjoint(last):
        return text
    both = first.intersection(last)
    before, *parts = marked.split(regions.MARK)
    # The kind of a mark is no part of the line behind it.
    blocks = {block for part in (before, *[part[1:] for part in parts]) for block in part.split(BLOCK_MARK)}
    rows = [
        (block, line) for block in blocks if block.count(regions.LINK_BEGIN) > 1 and (line := _read_line(block)) in both
    ]
    bars = {line for block, line in rows if count_linked(block) * 2 > len(line)}
    if not bars:
        return text
    left = "\n".join([line for line in text.split("\n") if line not in bars])
    return left if len(left) >= min(_SURELY_ENOUGH, len(text) * _ENOUGH_SHARE) else text


def _read_line(block: str) -> str:
    return " ".join(block.replace(regions.LINK_BEGIN, "").replace(regions.LINK_END, "").split())
