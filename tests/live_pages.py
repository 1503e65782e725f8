"""A site of many documents, each with a phrase of its own, and what a search finds of them after a disaster."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.sources.loading import load_project
from tests import backends
from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.site.client import SiteProcess
from tests.site.expected import short

HOST: Final = "live.acme.test"
#: How many documents: few in `make test`; many, also with Solr and PostgreSQL, in the soak.
SIZES: Final = (100, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.matrix]))
_SYLLABLES: Final = tuple(first + second for first in "bdfgklmnprtvz" for second in ("a", "e", "i", "o", "u", "ai"))
_WORDS: Final = 80
#: So many words of its text are the phrase of a document.
_PHRASE: Final = 4
#: How many documents have another text once the site is back.
_CHANGED: Final = 5


def path(number: int) -> str:
    """Where a document is."""
    return f"/d/{number:04}.html"


def words(number: int, edition: int) -> list[str]:
    """The text of a document: words that no other has."""
    chance = random.Random(f"{number} {edition}")
    return ["".join(chance.choices(_SYLLABLES, k=4)) for _ in range(_WORDS)]


def phrase(number: int, edition: int = 0) -> str:
    """Words that this edition of this document has, and nothing else."""
    return " ".join(words(number, edition)[:_PHRASE])


def document(number: int, edition: int = 0, head: str = "") -> str:
    """The page of a document."""
    text = " ".join(words(number, edition))
    return (
        f"<!DOCTYPE html>\n<html><head><title>Sheet {number}</title>{head}</head>"
        f"<body><main><h1>Sheet {number}</h1><p>{text}.</p></main></body></html>\n"
    )


def start_page(size: int, head: str = "") -> str:
    """The page that links to all documents."""
    links = "".join(f'<li><a href="{path(number)}">Sheet {number}</a>' for number in range(size))
    text = "Here are the sheets of our instruments, each for itself, from the oldest to the newest one."
    return f"<!DOCTYPE html>\n<html><head><title>Sheets</title>{head}</head><body><p>{text}</p><ul>{links}</ul></body></html>\n"


def sitemap(site: SiteProcess, size: int) -> str:
    """A sitemap of all documents."""
    entries = "".join(f"<url><loc>{site.url(HOST, path(number))}</loc></url>\n" for number in range(size))
    return f'<?xml version="1.0"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'


def source(site: SiteProcess) -> dict[str, Any]:
    """What the source file of such a site says."""
    return {"start": {"urls": [site.url(HOST)]}, "scope": {"include_hosts": [HOST]}, "fetch": {"retries": 0}}


@contextmanager
def crawled_once(folder: Path, size: int) -> Iterator[LivePages]:
    """A project in ``folder`` that has crawled such a site once; to be copied."""
    with SiteProcess() as site:
        live = LivePages(new_project(folder, site, **source(site)), size)
        live.fill()
        assert live.crawl().exit_code == 0
        assert (live.wrong(), live.differences()) == ([], "")
        yield live


@dataclass
class LivePages:
    """The documents 0 to ``size`` - 1 of a project and its site; ``editions`` are those texts that are not the first.

    ``gone`` are documents that nobody misses.
    """

    project: CrawlProject
    size: int
    editions: dict[int, int] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)

    def copy(self, folder: Path) -> LivePages:
        """The same in a copy of the project; the site is as at first."""
        self.fill()
        target = backends.current.copy(self.project.folder, folder)
        return LivePages(replace(self.project, folder=target), self.size)

    def inside(self, folder: Path) -> LivePages:
        """The same documents in a project of another folder."""
        return replace(self, project=replace(self.project, folder=folder))

    @property
    def site(self) -> SiteProcess:
        """Where they are."""
        return self.project.site

    def fill(self, make: Callable[[int, int], str] = document, head: str = "") -> None:
        """Sets all pages as they are in good times, each by ``make`` of its number and edition."""
        self.site.reset()
        self.site.set_page(HOST, "/", start_page(self.size, head))
        self.site.set_page(HOST, "/sitemap.xml", sitemap(self.site, self.size), content_type="application/xml")
        there = [number for number in range(self.size) if number not in self.gone]
        self.site.set_pages(HOST, {path(number): make(number, self.editions.get(number, 0)) for number in there})

    def heal(self) -> None:
        """The site is as before, but for documents that have changed."""
        self.change(range(0, self.size, self.size // _CHANGED))

    def change(self, numbers: range) -> None:
        """Sets all pages as they are in good times; these documents have another text than at first."""
        self.editions |= dict.fromkeys(numbers, 1)
        self.fill()

    def crawl(self, *options: str, **variables: str) -> Ended:
        """One run."""
        return self.project.crawl(*options, **variables)

    def wrong(self, *, on_the_way: bool = False) -> list[str]:
        """What a search for the phrase of each document finds else than that document alone; a line each.

        ``on_the_way``: some may still be found by their first phrase, in place of the present one.
        """
        lines = []
        with closing(open_index(load_project(self.project.folder))) as index:

            def find(number: int, edition: int) -> list[str]:
                asked = SearchQuery(words=f'"{phrase(number, edition)}"', source="demo", rows=3)
                return [short(hit.fields["url"]) for hit in index.search(asked).hits]

            for number in range(self.size):
                edition = self.editions.get(number, 0)
                present, before = find(number, edition), find(number, 0) if edition else []
                wanted = [] if number in self.gone else [HOST + path(number)]
                if (present, before) != (wanted, []) and not (on_the_way and present + before == wanted):
                    lines.append(f"{path(number)}: found {present}, and {before} by its first text")
        return lines

    def found_by_command(self, number: int) -> bool:
        """Whether the command finds a document by its phrase."""
        words = f'"{phrase(number, self.editions.get(number, 0))}"'
        answer = json.loads(self.project.command("search", words, "--json").stdout)
        return [short(hit["url"]) for hit in answer["hits"]] == [HOST + path(number)]

    def differences(self) -> str:
        """What ``verify`` says where index and table differ."""
        ended = self.project.command("verify", "demo")
        return "" if ended.returncode == 0 else ended.stdout + ended.stderr

    def command(self, *words: str) -> int:
        """Another command of ours; its exit code."""
        return self.project.command(*words).returncode
