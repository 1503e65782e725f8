"""Several sources of one project over the same hosts, and what the hosts saw of their requests."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import source
from tests.site.client import LogEntry, SiteProcess, source_toml


def sources_of(site: SiteProcess, folder: Path, **sources: dict[str, Any]) -> CrawlProject:
    """A project of several sources, each over the hosts that it starts at."""
    for name, tables in sources.items():
        project = new_project(folder, site, name=name)
        (folder / "sources" / f"{name}.toml").write_text(source_toml(site, **tables), "utf-8")
    return project


def at(site: SiteProcess, host: str | list[str], *paths: str, **fetch: Any) -> dict[str, Any]:
    """A source of so many paths of a host or several, and of nothing else."""
    found = source(site, host, scope={"follow_links": False}, **fetch)
    urls = [site.url(each, path) for each in found["scope"]["include_hosts"] for path in paths]
    return {**found, "start": {"urls": urls, "sitemaps": "off"}}


def gaps(entries: Iterable[LogEntry]) -> list[float]:
    """The seconds between each request and the next, as the server saw them arrive."""
    times = sorted(entry["time"] for entry in entries)
    return [after - before for before, after in pairwise(times)]
