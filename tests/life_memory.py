"""What a crawler may know, and what it must know, of a ``Town`` from the runs so far.

A run may end anywhere, so there are two answers to each question: ``may`` counts each run that can have seen something,
``must`` those alone that visited all pages for sure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from copy import deepcopy

from tests.whole_lives import ROOT, RUNS, URLS, Town, host_of

ALL = (ROOT, *URLS)


class Memory:
    """Runs since the last completed one are one run: they are named by that one."""

    def __init__(self) -> None:
        #: runs that may have found no page, or may have failed, since the page was well
        self._gone: defaultdict[str, set[int]] = defaultdict(set)
        self._troubled: defaultdict[str, set[int]] = defaultdict(set)
        #: the same, for sure
        self._gone_for: Counter[str] = Counter()
        self._failed_for: Counter[str] = Counter()
        #: what each page names for sure, and all that it may name
        self._links: defaultdict[str, set[str]] = defaultdict(set)
        self._all_links: defaultdict[str, set[str]] = defaultdict(set)

    def copy(self) -> Memory:
        """What the copy of a store knows."""
        return deepcopy(self)

    def put_back(self, saved: Memory) -> None:
        """The store is an older one: what happened since is forgotten, or not."""
        for now, before in (
            (self._gone, saved._gone),
            (self._troubled, saved._troubled),
        ):
            for url, runs in before.items():
                now[url] |= runs
        for url, links in saved._all_links.items():
            self._all_links[url] |= links
        self._gone_for.clear()
        self._failed_for.clear()
        self._links.clear()

    def begin(self, town: Town, after_run: int) -> None:
        """Notes what a run that begins now may see."""
        for url in ALL:
            if town.may_be_gone(url):
                self._gone[url].add(after_run)
            if not town.is_indexable(url):
                self._troubled[url].add(after_run)
            if not town.is_gone(url):
                del self._gone_for[url]
            if not town.fails(url):
                del self._failed_for[url]
            if host_of(url) in town.walls:
                # The login form may be taken for the page.
                self._links[url] = set()
            elif url in town.pages:
                # Also where it is not sure that it is followed: it may be.
                self._links[url] &= town.names(url)
            self._all_links[url] |= town.names(url)

    def complete(self, town: Town, visited: Collection[str], in_index: Collection[str]) -> None:
        """Notes what a run has seen that visited these pages for sure; ``in_index`` are documents before or after it."""
        for url in visited:
            self._gone_for[url] += town.is_gone(url)
            self._failed_for[url] += town.fails(url)
            if town.is_followed(url):
                self._links[url] = town.names(url)
                self._all_links[url] = town.names(url)
            elif (town.is_gone(url) or town.is_refused(url)) and url not in in_index:
                self._all_links[url] = set()

    def note_well(self, urls: Collection[str]) -> None:
        """Notes pages that are well for sure."""
        for url in urls:
            self._gone.pop(url, None)
            self._troubled.pop(url, None)

    def may_be_confirmed(self, url: str) -> bool:
        """Whether enough runs may have seen that there is no page."""
        return len(self._gone[url]) >= RUNS

    def must_be_confirmed(self, url: str) -> bool:
        """Whether enough runs have seen it."""
        return self._gone_for[url] >= RUNS

    def may_be_hidden(self, url: str) -> bool:
        """Whether enough runs may have failed."""
        return len(self._troubled[url]) >= RUNS

    def must_be_hidden(self, url: str) -> bool:
        """Whether enough runs have failed."""
        return self._failed_for[url] >= RUNS

    def named(self, pages: Collection[str]) -> set[str]:
        """What these pages name for sure; the start page is always named."""
        return {ROOT}.union(*(self._links[page] for page in pages))

    def may_be_named(self) -> set[str]:
        """What anything may name."""
        return {ROOT}.union(*self._all_links.values())
