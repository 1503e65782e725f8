"""A10: start lists inline and from files; they are checked against the rules and never widen the scope."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page
from tests.site.client import SiteProcess

HOST: Final = "lists.acme.test"
OTHER: Final = "elsewhere.test"


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    for name in ("inline", "listed", "linked"):
        site.set_page(HOST, f"/{name}.html", page(name))
    site.set_page(HOST, "/listed.html", page("listed", "/linked.html", site.url(OTHER, "/from-listed.html")))
    for path in ("/seed.html", "/from-listed.html"):
        site.set_page(OTHER, path, page("outside"))
    return site


def source_keys(site: SiteProcess) -> dict[str, Any]:
    return {
        "start": {
            "urls": [site.url(HOST, "/inline.html")],
            "files": ["lists/first.txt", "lists/second.txt"],
            "sitemaps": "off",
        },
        "scope": {"include_hosts": [HOST]},
        "fetch": {"retries": 0},
    }


def write_lists(folder: Path, site: SiteProcess) -> None:
    """Two lists: one with comments, blanks and a URL twice, one with a URL outside the scope."""
    (folder / "lists").mkdir(exist_ok=True)
    first = f"# ours\n\n  {site.url(HOST, '/listed.html')}#part\r\n{site.url(HOST, '/inline.html')}\n"
    (folder / "lists" / "first.txt").write_text(first, "utf-8")
    (folder / "lists" / "second.txt").write_text(f"\ufeff{site.url(OTHER, '/seed.html')}\n", "utf-8")


def test_crawl_when_a_listed_url_is_outside_then_no_request_one_log_line_and_one_row(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = new_project(tmp_path, site, **source_keys(site))
    write_lists(tmp_path, site)
    site.clear_log()

    ended = project.crawl()

    rows = project.rows()
    named = [line for line in project.log().splitlines() if f"{OTHER}:{site.port}/seed.html" in line]
    assert ended.exit_code == 0
    assert site.log(host=OTHER) == []
    assert sorted(site.requested()) == [f"{HOST}/inline.html", f"{HOST}/linked.html", f"{HOST}/listed.html"]
    assert project.indexed() == [f"{HOST}/inline.html", f"{HOST}/linked.html", f"{HOST}/listed.html"]
    assert len(named) == 1
    assert "start URL outside the boundary" in named[0]
    assert {url: row["code"] for url, row in rows.items() if url.startswith(OTHER)} == {f"{OTHER}/seed.html": 955}
    assert ended.refused_links == {OTHER: "scope.include_hosts: no include matches"}
    assert {url: row["depth"] for url, row in rows.items() if row["depth"] == 0} == {
        f"{HOST}/inline.html": 0,
        f"{HOST}/listed.html": 0,
        f"{OTHER}/seed.html": 0,
    }


def test_crawl_when_a_list_has_a_line_that_is_no_url_then_file_and_line_are_named_and_nothing_requested(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = new_project(tmp_path, site, **source_keys(site))
    write_lists(tmp_path, site)
    (tmp_path / "lists" / "first.txt").write_text("https://lists.acme.test/\n\nlists.acme.test/a\n", "utf-8")
    site.clear_log()

    ended = project.crawl()
    checked = project.command("sources", "check")

    line = 'lists/first.txt: line 3: not an http or https URL (got "lists.acme.test/a")\n'
    assert (ended.exit_code, ended.errors) == (4, line)
    assert (checked.returncode, checked.stderr) == (4, line)
    assert site.log() == []
