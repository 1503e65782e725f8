"""A site, and the commands ``plan`` and ``apply`` over a project that crawls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess

HOST = "plans.acme.test"
NAMES = [f"/p/{number}.html" for number in range(20)]


def fill(site: SiteProcess) -> None:
    site.set_page(HOST, "/", page("start", *NAMES, "/secret/a.html", "/goes", "/gone.html"))
    for number, name in enumerate(NAMES):
        head = f'<meta name="dc.creator" content="author {number % 3}">'
        site.set_page(HOST, name, page(f"page {number}", "/", text=f"all of number {number}", head=head))
    site.set_page(HOST, "/secret/a.html", page("secret", "/secret/b.html", text="hidden a"))
    site.set_page(HOST, "/secret/b.html", page("secret b", text="hidden b"))


def plan(project: CrawlProject, *, code: int = 0) -> dict[str, Any]:
    return project.ask("plan", project.name, code=code)


def apply(project: CrawlProject, made: dict[str, Any]) -> dict[str, Any]:
    return project.ask("apply", made["plan"])


def status(project: CrawlProject) -> dict[str, Any]:
    return project.ask("status", project.name)


def edit(project: CrawlProject, **tables: Any) -> None:
    project.edit(**source(project.site, HOST) | tables)


def crawled(folder: Path, site: SiteProcess) -> CrawlProject:
    """A project that has crawled the site; what was requested is forgotten."""
    made = new_project(folder, site)
    edit(made)
    made.crawl()
    site.clear_log()
    return made
