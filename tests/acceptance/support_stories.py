"""Stories of several runs over a small site, told side by side: starting a process costs more than crawling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import backends
from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.site.behaviour import is_aside
from tests.site.client import LogEntry, SiteProcess
from tests.site.expected import short

_AT_ONCE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that ended, the requests it sent, and the state it left; URLs as in ``tests.site.expected``.

    ``listed`` are the duplicates that documents of the index name, of those that name any.
    """

    ended: Ended
    codes: dict[str, int]
    in_index: set[str]
    versions: dict[str, int]
    requested: list[str]
    log: list[LogEntry]
    listed: dict[str, list[str]]

    @property
    def counts(self) -> dict[str, int]:
        """The counters of the run."""
        return self.ended.counts

    @property
    def bodies(self) -> int:
        """How many pages the site sent whole."""
        return sum(entry["status"] == 200 and not is_aside(entry["path"]) for entry in self.log)


Story = Callable[[CrawlProject], list[Run]]
Tell = Callable[[str], list[Run]]


def run(project: CrawlProject, *options: str, **variables: str) -> Run:
    """One run of ``project``; ``in_index`` is what the table says, ``versions`` what the index has."""
    project.site.clear_log()
    ended = project.crawl(*options, **variables)
    rows = project.rows()
    return Run(
        ended=ended,
        codes={url: row["code"] for url, row in rows.items()},
        in_index={url for url, row in rows.items() if row["indexed_version"] is not None},
        versions=project.versions(),
        requested=project.site.requested(),
        log=project.site.log(),
        listed={
            short(hit.fields["url"]): [short(url) for url in hit.fields["duplicates"]]
            for hit in project.hits("*")
            if hit.fields.get("duplicates")
        },
    )


@contextmanager
def told_together(stories: Mapping[str, Story], folders: pytest.TempPathFactory) -> Iterator[Tell]:
    """Tells each story with a site and a project of its own; the runs of one by its name.

    All are told at once; with the pair of the matrix, which few tests are for, each when it is asked for.
    """

    def told(story: Story, folder: Path) -> list[Run]:
        with SiteProcess() as site:
            return story(new_project(folder, site))

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        futures: dict[str, Future[list[Run]]] = {}

        def begin(name: str) -> Future[list[Run]]:
            if name not in futures:
                futures[name] = threads.submit(told, stories[name], folders.mktemp(name))
            return futures[name]

        if not backends.is_matrix():
            for name in stories:
                begin(name)
        yield lambda name: begin(name).result()


def page(title: str, *links: str, text: str = "", head: str = "") -> str:
    """A page that links to ``links``."""
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return (
        f"<!DOCTYPE html>\n<html><head><title>{title}</title>{head}</head><body><p>{text or title}</p>{anchors}</body>"
        "</html>\n"
    )


def pages(site: SiteProcess, host: str, **bodies: str) -> None:
    """Sets the start page, which links to all of ``bodies``, and these as /NAME.html."""
    site.set_page(host, "/", page("start", *(f"/{name}.html" for name in bodies)))
    site.set_pages(host, {f"/{name}.html": body for name, body in bodies.items()})


def list_in_sitemap(site: SiteProcess, host: str, *paths: str) -> None:
    """Sets a sitemap of these paths of a host."""
    entries = "".join(f"<url><loc>{site.url(host, path)}</loc></url>" for path in paths)
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    site.set_page(host, "/sitemap.xml", body, content_type="application/xml")


def source(
    site: SiteProcess,
    host: str | Sequence[str],
    path: str = "/",
    *,
    scope: Mapping[str, Any] | None = None,
    **fetch: Any,
) -> dict[str, Any]:
    """Overrides for a source of a host or several, with more keys of [scope], without retries unless ``fetch`` says so."""
    hosts = [host] if isinstance(host, str) else [*host]
    return {
        "start": {"urls": [site.url(each, path) for each in hosts]},
        "scope": {"include_hosts": hosts, **(scope or {})},
        "fetch": {"retries": 0, **fetch},
    }
