"""What may happen to a ``Town`` between two runs: pages come, change and go, hosts fall ill, the source file is edited."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from tests.whole_lives import EDITS, ROBOTS, ROOT, URLS, WALLS, Page, Town, host_of

#: What a page may become.
PAGES: Final = (
    "new text", "old text", "gone", "gone for good", "link", "unlink", "orphan", "copy", "canonical", "noindex", "301",
    "302", "403", "500", "503", "reset", "cut",
)  # fmt: skip
#: Hours by which the clock goes on, or back.
CLOCK: Final = {"clock -26": -26, "clock 1": 1, "clock 26": 26, "clock 192": 192}
#: All of them; what is listed again happens more often.
KINDS: Final = (
    *PAGES, "old text", "old text", "gone", "orphan", "link", "clock 26", "clock 26", "heal", "heal", *CLOCK, *WALLS,
    *ROBOTS, *EDITS,
)  # fmt: skip


class Change(NamedTuple):
    """One thing that happens, to a page or to its host; ``other`` is the page that it has to do with."""

    kind: str
    url: str
    other: str


class Changes:
    """Makes changes to one ``Town``, and knows how its pages are while nothing is wrong with them."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self._plain = dict(town.pages)
        self._editions = 0
        #: texts that several pages had
        self.shared: set[tuple[int, int]] = set()

    def make(self, change: Change) -> None:
        """Makes one; a change of the clock is not ours."""
        kind, url, _ = change
        if kind in EDITS:
            self._town.edits ^= {kind}
        elif kind in WALLS:
            self._town.walls[host_of(url)] = kind
        elif kind in ROBOTS:
            self._town.robots[host_of(url)] = kind
        elif kind == "heal":
            self._town.walls.clear()
            self._town.robots.clear()
            self._town.pages.update(self._plain)
        elif kind in PAGES:
            self._change_page(change)

    def _change_page(self, change: Change) -> None:
        kind, url, other = change
        pages = self._town.pages
        self._editions += 1
        page = self._plain.get(url) or Page(text=(URLS.index(url) + 1, self._editions))
        if kind == "new text":
            pages[url] = self._plain[url] = replace(page, text=(URLS.index(url) + 1, self._editions))
        elif kind == "gone":
            pages.pop(url, None)
        elif kind in {"link", "unlink"}:
            self._link(ROOT if self._editions % 2 else other, url, is_there=kind == "link")
        elif kind == "orphan":
            for source in (*pages,):
                self._link(source, url, is_there=False)
        elif kind == "copy":
            if other in pages:
                pages[url] = pages[other]
                self.shared.add(pages[other].text)
        else:
            if kind in {"301", "302"} and other in pages:
                self.shared.add(pages[other].text)
            pages[url] = _turn(page, kind, other)

    def _link(self, source: str, url: str, *, is_there: bool) -> None:
        for pages in (self._town.pages, self._plain):
            if source in pages:
                links = pages[source].links
                pages[source] = replace(pages[source], links=links | {url} if is_there else links - {url})


def _turn(page: Page, kind: str, other: str) -> Page:
    """A page of which one thing is otherwise."""
    if kind == "canonical":
        return replace(page, canonical=other)
    if kind == "noindex":
        return replace(page, noindex=True)
    if kind in {"301", "302"}:
        return replace(page, status=int(kind), to=other)
    if kind in {"reset", "cut"}:
        return replace(page, fault=kind)
    if kind == "old text":
        return page
    return replace(page, status=410 if kind == "gone for good" else int(kind))
