"""A small site as plain values, with what a crawler may make of it: the model of ``test_whole_lives``.

URLs are written as host and path. The site says what a page answers now; ``tests.life_memory`` has what earlier runs saw
of it, and a ``Life`` what has ever spoken against a page, and which removals were seen when.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.live_pages import phrase, words
from tests.site.client import SiteProcess

HOSTS: Final = ("one.acme.test", "two.acme.test")
ROOT: Final = HOSTS[0] + "/"
#: Some names are long, for ``scope.max_url_length``; two are in folders that edits of rules name.
URLS: Final = (
    *(f"{HOSTS[0]}/{name}.html" for name in ("apple", "birch", "cedar", "drawer/elm", "drawer/fir", "grass" * 12)),
    *(f"{HOSTS[1]}/{name}.html" for name in ("hazel", "iris", "drawer/jade", "kelp" * 15)),
)
#: Between the length of the long URLs and that of all others.
SHORT_URL: Final = 60
DAY: Final = 86_400
#: So many removals are never too many, but for ``max_delete_documents``.
FREE: Final = 10
#: So many runs confirm that a page is gone, or hide a document, where an edit asks for it.
RUNS: Final = 2
#: What takes the place of an answer of a page that is there.
FAILURES: Final = frozenset({403, 500, 503})

LOGIN: Final = (
    "<html><title>Sign in</title><body><h1>Sign in</h1><form method=post><p>Please sign in to read on.</p>"
    "<input name=user><input type=password name=password>{hidden}</form>"
)
#: What a host answers for each page that it has, while there is a wall before it.
WALLS: Final = {
    "login": LOGIN.format(hidden=""),
    "login with a nonce": LOGIN.format(hidden="<p>Ticket {nonce}</p><input type=hidden name=t value={nonce}>"),
}
ROBOTS: Final = {"forbids": (200, "User-agent: *\nDisallow: /drawer/\n"), "fails": (500, "")}
#: Edits of the source file, there and back.
EDITS: Final[dict[str, dict[str, Any]]] = {
    "scope.exclude_urls": {"scope": {"exclude_urls": ["*/drawer/*"]}},
    "keep.exclude_urls": {"keep": {"exclude_urls": ["*/drawer/*"]}},
    "keep.min_bytes": {"keep": {"min_bytes": 10}},
    "scope.max_url_length": {"scope": {"max_url_length": SHORT_URL}},
    "scope.depth": {"scope": {"depth": 1}},
    "lifecycle.remove_on": {"lifecycle": {"remove_on": [410]}},
    "lifecycle.max_delete_documents": {"lifecycle": {"max_delete_documents": 1000}},
    "lifecycle.gone_confirmations": {"lifecycle": {"gone_confirmations": RUNS}},
    "lifecycle.error_runs_before_hidden": {"lifecycle": {"error_runs_before_hidden": RUNS}},
    # Of both the second holds.
    "lifecycle.orphans = delete": {"lifecycle": {"orphans": "delete"}},
    "lifecycle.orphans = keep": {"lifecycle": {"orphans": "keep"}},
}


@dataclass(frozen=True, kw_only=True)
class Page:
    """What one URL answers; ``text`` names words of their own, ``to`` is where a redirect leads."""

    text: tuple[int, int]
    links: frozenset[str] = frozenset()
    canonical: str | None = None
    noindex: bool = False
    status: int = 200
    to: str | None = None
    #: a mode of ``tests.site.behaviour`` in place of an answer
    fault: str | None = None

    @property
    def is_read(self) -> bool:
        """Whether there is a page to be read."""
        return self.status == 200 and self.fault is None

    @property
    def phrase(self) -> str:
        """What a search finds it by."""
        return phrase(*self.text)

    def body(self, port: int) -> str:
        """Its HTML."""
        head = "<meta name=robots content=noindex>" if self.noindex else ""
        if self.canonical is not None:
            head += f'<link rel=canonical href="{at(self.canonical, port)}">'
        links = "".join(f'<a href="{at(url, port)}">on</a> ' for url in sorted(self.links))
        number, edition = self.text
        return (
            f"<!DOCTYPE html>\n<html><head><title>Sheet {number}</title>{head}</head><body><main><h1>Sheet</h1>"
            f"<p>{' '.join(words(number, edition))}.</p></main><nav>{links}</nav></body></html>\n"
        )


def at(url: str, port: int) -> str:
    """The URL with the port of the site."""
    host, _, path = url.partition("/")
    return f"http://{host}:{port}/{path}"


def host_of(url: str) -> str:
    """The host of a URL."""
    return url.partition("/")[0]


@dataclass
class Town:
    """The site and the source file as they are now."""

    pages: dict[str, Page] = field(default_factory=dict)
    walls: dict[str, str] = field(default_factory=dict)
    robots: dict[str, str] = field(default_factory=dict)
    up: bool = True
    edits: set[str] = field(default_factory=set)

    @property
    def orphans(self) -> str:
        """What becomes of documents that nothing names any more."""
        return next((what for what in ("keep", "delete") if f"lifecycle.orphans = {what}" in self.edits), "check")

    @property
    def needs_confirmation(self) -> bool:
        """Whether one run that saw a page gone is not enough."""
        return "lifecycle.gone_confirmations" in self.edits

    @property
    def hides(self) -> bool:
        """Whether documents leave whose pages failed in enough runs."""
        return "lifecycle.error_runs_before_hidden" in self.edits

    def describe(self) -> Hashable:
        """All that a run depends on; equal where it would find the same."""
        hosts = frozenset(self.walls.items()), frozenset(self.robots.items())
        return frozenset(self.pages.items()), *hosts, self.up, frozenset(self.edits)

    def answers(self, url: str) -> bool:
        """Whether a request for the URL gets what the page itself says."""
        host = host_of(url)
        return self.up and host not in self.walls and self.robots.get(host) != "fails"

    def is_excluded(self, url: str) -> bool:
        """Whether our own rules forbid to request it."""
        return ("/drawer/" in url and "scope.exclude_urls" in self.edits) or (
            len(url) > SHORT_URL and "scope.max_url_length" in self.edits
        )

    def is_forbidden(self, url: str) -> bool:
        """Whether the robots.txt of its host forbids to request it."""
        return self.up and "/drawer/" in url and self.robots.get(host_of(url)) == "forbids"

    def is_unwanted(self, url: str) -> bool:
        """Whether it may be requested, and is not to be indexed: our rules say so."""
        return "/drawer/" in url and "keep.exclude_urls" in self.edits

    def is_indexable(self, url: str) -> bool:
        """Whether a visit brings a document now, be it that of another page."""
        page = self.pages.get(url)
        if page is None or not page.is_read or page.noindex or not self.answers(url):
            return False
        return not (self.is_refused(url) or self.is_unwanted(url))

    def removes(self, url: str) -> bool:
        """Whether a run finds evidence of the page's own, or of the rules, against its document now."""
        if self.is_refused(url):
            return True
        page = self.pages.get(url)
        if not self.answers(url):
            return False
        if page is None:
            return "lifecycle.remove_on" not in self.edits
        if page.status == 301 and page.to is not None:
            return self.is_indexable(page.to)
        return page.status == 410 or (page.is_read and (page.noindex or self.is_unwanted(url)))

    def is_refused(self, url: str) -> bool:
        """Whether it is not requested, by our rules or those of its host."""
        return self.is_excluded(url) or self.is_forbidden(url)

    def is_gone(self, url: str) -> bool:
        """Whether a visit finds now that there is no page any more, and nothing else speaks against it."""
        if self.is_refused(url) or not self.answers(url):
            return False
        page = self.pages.get(url)
        return page.status == 410 if page is not None else "lifecycle.remove_on" not in self.edits

    def may_be_gone(self, url: str) -> bool:
        """Whether nothing but that there is no page any more may speak against it."""
        page = self.pages.get(url)
        is_missing = page is None or (page.status == 410 and host_of(url) not in self.walls)
        return is_missing and not self.is_refused(url)

    def fails(self, url: str) -> bool:
        """Whether a visit fails for sure now, without evidence against the document."""
        page = self.pages.get(url)
        if page is None or self.is_excluded(url) or "/drawer/" in url:
            return False
        return not self.up or (self.answers(url) and (page.status in FAILURES or page.fault is not None))

    def is_followed(self, url: str) -> bool:
        """Whether a visit finds now what the page links to, or where it leads."""
        page = self.pages.get(url)
        if page is None or self.is_refused(url) or not self.answers(url):
            return False
        return page.is_read or (page.to is not None and page.fault is None)

    def names(self, url: str) -> set[str]:
        """What the page names by links, as canonical, or as the target of a redirect; itself does not count."""
        page = self.pages.get(url)
        if page is None:
            return set()
        return {*page.links, *(each for each in (page.canonical, page.to) if each is not None)} - {url}

    def may_remove(self, url: str) -> bool:
        """The same, and whatever other pages or a wall may have to do with."""
        page = self.pages.get(url)
        if page is None or self.removes(url) or host_of(url) in self.walls:
            return True
        if "scope.depth" in self.edits and url not in {ROOT, *self.names(ROOT)}:
            return True
        same = sum(other.text == page.text for other in self.pages.values())
        return page.status in {301, 302, 410} or page.canonical is not None or same > 1

    def reachable(self) -> set[str]:
        """URLs to which links lead from the start page, as far as pages can be read now; within the depth."""
        found, border = {ROOT}, [ROOT]
        depth = 0
        while border and not (depth == 1 and "scope.depth" in self.edits):
            border = sorted({link for url in border for link in self._leads_to(url)} - found)
            found.update(border)
            depth += 1
        return found

    def _leads_to(self, url: str) -> Iterator[str]:
        page = self.pages.get(url)
        if (
            page is not None
            and not self.is_forbidden(url)
            and self.answers(url)
            and not self.is_excluded(url)
            and page.is_read
        ):
            yield from sorted(page.links)

    def canonicals(self, url: str) -> Iterator[str]:
        """The URL, and those that canonical links and redirects lead to from it."""
        seen: set[str] = set()
        while url not in seen:
            seen.add(url)
            yield url
            page = self.pages.get(url)
            url = url if page is None else page.canonical or page.to or url


class Publisher:
    """Makes the site what a ``Town`` says; only what has changed is sent to it."""

    def __init__(self, site: SiteProcess) -> None:
        self._site = site
        site.reset()
        self._published: dict[str, Page | None] = {}
        self._walls: dict[str, str] = {}
        self._robots: dict[str, str] = {}
        self._up = True

    def publish(self, town: Town) -> None:
        """Sends the differences."""
        for url in (ROOT, *URLS):
            page = town.pages.get(url)
            if self._published.get(url) != page:
                self._send(url, page)
        self._published = dict(town.pages)
        for host in HOSTS:
            if self._walls.get(host) != town.walls.get(host):
                self._wall(host, town.walls.get(host))
            if self._robots.get(host) != town.robots.get(host):
                status, body = ROBOTS[town.robots[host]] if host in town.robots else (404, "none")
                self._site.set_page(host, "/robots.txt", body, content_type="text/plain", status=status)
        self._walls, self._robots = dict(town.walls), dict(town.robots)
        if town.up != self._up:
            (self._site.up if town.up else self._site.down)()
            self._up = town.up

    def _send(self, url: str, page: Page | None) -> None:
        host, _, path = url.partition("/")
        self._site.change("behaviour", method="DELETE", host=host, path=f"/{path}")
        if page is None:
            self._site.delete_page(host, f"/{path}")
            return
        headers = {} if page.to is None else {"Location": at(page.to, self._site.port)}
        body = page.body(self._site.port) if page.status == 200 else f"status {page.status}"
        self._site.set_page(host, f"/{path}", body, status=page.status, headers=headers)
        if page.fault is not None:
            self._site.set_behaviour(host, f"/{path}", mode=page.fault)

    def _wall(self, host: str, wall: str | None) -> None:
        if wall is None:
            self._site.change("behaviour", method="DELETE", host=host)
        else:
            kind = {"Content-Type": "text/html"}
            self._site.set_behaviour(host, status=200, body=WALLS[wall], headers=kind, known=True)


def first_town() -> Town:
    """A start page that leads to four pages of both hosts."""
    pages = {url: Page(text=(number, 0)) for number, url in enumerate((ROOT, *URLS)) if number % 3 != 2}
    pages[ROOT] = replace(pages[ROOT], links=frozenset(pages) - {ROOT})
    return Town(pages)
