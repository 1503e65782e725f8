"""A3: two sources share a named set of parameters; one edit changes both."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess, write_project

HOSTS: Final = {"one": "one.acme.test", "two": "two.acme.test", "three": "three.acme.test"}


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    for host in HOSTS.values():
        site.set_page(host, "/", page(f"{host} start", "/a.html"))
        site.set_page(host, "/a.html", page(f"{host} a", "/b.html"))
        site.set_page(host, "/b.html", page(f"{host} b"))
    return site


def write_all(folder: Path, site: SiteProcess, *, depth: int, header: str) -> None:
    """Sources one and two with the set ``shared``, three with ``standard``."""
    sets = {
        "shared": {"scope": {"depth": depth}, "fetch": {"headers": {"X-Set": header}}},
        "standard": {"scope": {"depth": 2}, "fetch": {"headers": {"X-Set": "standard"}}},
    }
    chosen: dict[str, dict[str, Any]] = {"one": {"parameters": "shared"}, "two": {"parameters": "shared"}, "three": {}}
    for name, keys in chosen.items():
        write_project(folder, site, name, project={"parameters": sets}, **keys, **source(site, HOSTS[name]))


def crawl_all(folder: Path, site: SiteProcess) -> tuple[dict[str, list[str]], dict[str, set[str]]]:
    """What each source has in the index, and what was sent as X-Set to its host."""
    site.clear_log()
    indexed: dict[str, list[str]] = {}
    for name in HOSTS:
        project = CrawlProject(folder=folder, site=site, name=name)
        ended = project.crawl()
        assert ended.exit_code == 0, ended.errors
        indexed[name] = [url.partition("/")[2] for url in project.indexed()]
    sent = {
        name: {entry["headers"].get("x-set", "") for entry in site.log(host=host, robots=False)}
        for name, host in HOSTS.items()
    }
    return indexed, sent


def test_crawl_when_two_sources_share_a_set_and_it_is_edited_then_both_change(
    site: SiteProcess, tmp_path: Path
) -> None:
    write_all(tmp_path, site, depth=1, header="first")

    indexed, sent = crawl_all(tmp_path, site)

    assert indexed == {"one": ["", "a.html"], "two": ["", "a.html"], "three": ["", "a.html", "b.html"]}
    assert sent == {"one": {"first"}, "two": {"first"}, "three": {"standard"}}

    write_all(tmp_path, site, depth=2, header="second")
    indexed, sent = crawl_all(tmp_path, site)

    assert indexed == {name: ["", "a.html", "b.html"] for name in HOSTS}
    assert sent == {"one": {"second"}, "two": {"second"}, "three": {"standard"}}
