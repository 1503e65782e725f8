"""Links that are refused for ``max_urls``, or lead to hosts outside: no row each, counted by rule and host, explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page
from tests.site.client import SiteProcess
from tests.stored_rows import query

HOST: Final = "www.acme.test"
OTHER: Final = "docs.acme.test"
MANY: Final = 2000
NO_INCLUDE: Final = "scope.include_hosts: no include matches"
PROPOSAL = {"action": "add", "file": "sources/demo.toml", "key": "scope.include_hosts", "value": OTHER}


def project_of(folder: Path, site: SiteProcess, **scope: Any) -> CrawlProject:
    start = {"urls": [site.url(HOST, "/refusing")], "sitemaps": "off"}
    return new_project(folder, site, start=start, scope={"include_hosts": [HOST], **scope}, fetch={"retries": 0})


@pytest.mark.matrix
def test_links_when_thousands_lead_outside_then_they_are_counted_and_an_edit_lets_them_in(
    site: SiteProcess, tmp_path: Path
) -> None:
    outside = [f"http://h{number}.partner.test/" for number in range(MANY)]
    docs = [site.url(OTHER, path) for path in ("/one", "/two")]
    site.set_page(HOST, "/refusing", page("start", "/second", *outside, *docs))
    site.set_page(HOST, "/second", page("second", *docs))
    for path in ("/one", "/two"):
        site.set_page(OTHER, path, page(path))
    project = project_of(tmp_path, site)

    first = project.crawl()
    told = project.ask("explain", docs[0])
    rows, hosts = project.rows(), query(tmp_path, "SELECT count(*) FROM hosts")[0][0]
    shown = project.command("status", "demo").stdout
    again = project.crawl()
    project.edit(**{**_sections(site), "scope": {"include_hosts": [HOST, OTHER]}})
    allowed = project.ask("explain", docs[0])
    edited = project.crawl()

    refused = first.status["refused_links"]
    assert set(rows) == {f"{HOST}/refusing", f"{HOST}/second"}
    assert hosts == 1
    assert refused[0] == {"rule": NO_INCLUDE, "host": site.url(OTHER).split("/")[2], "count": 4}
    assert sum(row["count"] for row in refused) == MANY + 4
    assert refused[-1]["host"] is None
    assert len(refused) < MANY / 5
    assert (first.counts["discovered"], first.counts["rejected"]) == (2, 0)
    assert again.status["refused_links"] == refused
    assert OTHER in shown
    assert "all others" in shown
    assert told["verdict"] == "not in the index: 955, outside the boundary"
    assert (told["decided_by"]["key"], told["decided_by"]["rule"]) == ("scope.include_hosts", "no include matches")
    assert told["decided_by"]["proposal"] == PROPOSAL
    assert allowed["decided_by"]["key"] == "scope.include_hosts"
    assert "as yet" in allowed["verdict"]
    assert f"{OTHER}/one" in project.indexed()
    assert sum(row["count"] for row in edited.status["refused_links"]) == MANY


def _sections(site: SiteProcess) -> dict[str, Any]:
    return {"start": {"urls": [site.url(HOST, "/refusing")], "sitemaps": "off"}, "fetch": {"retries": 0}}


def test_links_when_max_urls_is_reached_then_they_are_counted_and_a_raise_lets_them_in(
    site: SiteProcess, tmp_path: Path
) -> None:
    paths = [f"/leaf/{number}" for number in range(500)]
    for path in paths[:6]:
        site.set_page(HOST, path, page(path))
    site.set_page(HOST, "/refusing", page("start", *paths))
    project = project_of(tmp_path, site, max_urls=3)

    first = project.crawl()
    told = project.ask("explain", site.url(HOST, paths[-1]))
    rows = project.rows()
    project.edit(**{**_sections(site), "scope": {"include_hosts": [HOST], "max_urls": 5}})
    second = project.crawl()

    host = site.url(HOST).split("/")[2]
    assert sorted(rows) == sorted(f"{HOST}{path}" for path in ("/refusing", *paths[:2]))
    assert first.status["refused_links"] == [{"rule": "scope.max_urls: 3", "host": host, "count": 498}]
    assert told["verdict"] == "not in the index: 955, outside the boundary"
    assert (told["decided_by"]["key"], told["decided_by"]["rule"]) == ("scope.max_urls", "3")
    assert len(project.indexed()) == 5
    assert second.status["refused_links"] == [{"rule": "scope.max_urls: 5", "host": host, "count": 496}]


def test_links_when_a_sitemap_lists_hosts_outside_then_they_are_counted_too(site: SiteProcess, tmp_path: Path) -> None:
    listed = [site.url(HOST, "/listed"), *(f"http://elsewhere.test/{number}" for number in range(300))]
    site.set_page(HOST, "/refusing", page("start"))
    site.set_page(HOST, "/listed", page("listed"))
    site.set_page(HOST, "/sitemap.txt", "\n".join(listed), content_type="text/plain")
    project = project_of(tmp_path, site)
    start = {"urls": [site.url(HOST, "/refusing")], "sitemaps": [site.url(HOST, "/sitemap.txt")]}
    project.edit(start=start, scope={"include_hosts": [HOST]}, fetch={"retries": 0})

    ended = project.crawl()

    assert project.indexed() == [f"{HOST}/listed", f"{HOST}/refusing"]
    assert len(project.rows()) == 2
    assert ended.status["refused_links"] == [{"rule": NO_INCLUDE, "host": "elsewhere.test", "count": 300}]
