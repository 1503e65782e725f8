"""A small site of which each removal waits, and what commands say of waiting removals."""

from __future__ import annotations

from typing import Any, Final

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess

HOST: Final = "kept.acme.test"
NAMES: Final = ("alpha", "beta")
PATHS: Final = tuple(f"/{name}.html" for name in NAMES)
NOINDEX: Final = '<meta name="robots" content="noindex">'


def settings(site: SiteProcess, **more: Any) -> dict[str, Any]:
    """A source of which each removal waits."""
    return {**source(site, HOST), "lifecycle": {"max_delete_documents": 0}, **more}


def decide(project: CrawlProject, action: str, *options: str) -> dict[str, Any]:
    return project.ask("quarantine", action, "demo", *options)


def listed(project: CrawlProject, *options: str) -> list[dict[str, Any]]:
    return project.lines("quarantine", "list", "demo", *options)


def left(project: CrawlProject) -> set[str]:
    """The names of the pages in the index, but for the start page."""
    return {url.rpartition("/")[2].removesuffix(".html") for url in project.indexed()} - {""}


def is_verified(project: CrawlProject) -> bool:
    return project.command("verify", "demo").returncode == 0


# What may speak against the documents of these pages.


def gone(project: CrawlProject) -> None:
    for path in PATHS:
        project.site.delete_page(HOST, path)


def status_410(project: CrawlProject) -> None:
    for path in PATHS:
        project.site.set_behaviour(HOST, path, status=410)


def noindex(project: CrawlProject) -> None:
    write(project, "text of", head=NOINDEX)


def moved_outside(project: CrawlProject) -> None:
    for path in PATHS:
        project.site.set_behaviour(HOST, path, status=301, headers={"Location": "http://partner.test/"})


def canonical_elsewhere(project: CrawlProject, text: str = "newer text of") -> None:
    write(project, text, head=f'<link rel="canonical" href="{project.site.url(HOST, "/gamma.html")}">')


def write(project: CrawlProject, text: str, head: str = "") -> None:
    for name, path in zip(NAMES, PATHS, strict=True):
        project.site.set_page(HOST, path, page(f"{text} {name}", head=head))
