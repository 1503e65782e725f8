"""B6, D9: what an edit does to the rows of a large source is done while the crawl runs, some rows at a time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, page, run, source
from tests.crawl_forks import SLICES
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST, OTHER, LATE, MOVING = "sliced.acme.test", "other.acme.test", "late.acme.test", "moving.acme.test"
SWAPPED = "swapped.acme.test"
#: A start looks at two rows, and the crawl at two at a time.
SLICED: Final = {SLICES: "2"}
_PAGES: Final = 12
#: Without an edit no page is due for weeks.
_WEEKS: Final = {"recrawl_every_hours": 1000, "max_delete_percent": 100}
_BEFORE: Final[dict[str, Any]] = {"include_hosts": [HOST, OTHER]}
_AFTER: Final[dict[str, Any]] = {"include_hosts": [HOST], "strip_parameters": ["sid"]}


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    numbers = range(_PAGES)
    links = [f"/{number}" for number in numbers] + [f"/p?n={number}&sid=1" for number in numbers]
    site.set_page(HOST, "/", page("start", *links, site.url(OTHER)))
    site.set_page(OTHER, "/", page("the other", *(f"/{number}" for number in numbers)))
    for number in numbers:
        site.set_page(HOST, f"/{number}", page(f"page {number}"))
        site.set_page(OTHER, f"/{number}", page(f"page {number} of the other"))
        for query in (f"n={number}&sid=1", f"n={number}"):
            site.set_page(HOST, f"/p?{query}", page(f"page with parameters {number}"))
    site.set_page(LATE, "/", page("start", *(f"/q?n={number}&sid=1" for number in numbers)))
    for number in numbers:
        for query in (f"n={number}&sid=1", f"n={number}"):
            site.set_page(LATE, f"/q?{query}", page(f"slow page {number}"))
    # Links to the old path come first, then one to the new path.
    site.set_page(MOVING, "/", page("start", "/direct", *(f"/{number}" for number in numbers), "/old/a"))
    site.set_page(MOVING, "/direct", page("leads on", "/later"))
    site.set_page(MOVING, "/later", page("names it", "/new/a"))
    for path in ("/old/a", "/new/a", *(f"/{number}" for number in numbers)):
        site.set_page(MOVING, path, page(f"text of {path}"))
    site.set_page(SWAPPED, "/", page("start", "/x", "/y"))
    for path in ("/b", "/c"):
        site.set_page(SWAPPED, path, page(f"text of {path}"))
    site.set_behaviour(LATE, prefix="/q", delay_seconds=0.2)
    return site


def edit(project: CrawlProject, host: str, scope: dict[str, Any], **more: Any) -> None:
    project.edit(**source(project.site, host) | {"scope": scope, "lifecycle": _WEEKS, **more})


def crawl_edited(project: CrawlProject, host: str, scope: dict[str, Any], *options: str, **variables: str) -> Run:
    edit(project, host, scope)
    return run(project, *options, **variables)


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    return new_project(tmp_path, site)


def test_edit_when_rows_are_looked_at_while_it_crawls_then_it_ends_as_if_they_were_before(
    site: SiteProcess, tmp_path: Path
) -> None:
    at_once, sliced = (new_project(tmp_path / name, site) for name in ("once", "sliced"))
    for project in (at_once, sliced):
        crawl_edited(project, HOST, _BEFORE)

    expected = crawl_edited(at_once, HOST, _AFTER)
    found = crawl_edited(sliced, HOST, _AFTER, **SLICED)
    again = run(sliced, **SLICED)
    expected_back = crawl_edited(at_once, HOST, _BEFORE)
    back = crawl_edited(sliced, HOST, _BEFORE, **SLICED)

    log = Path(found.ended.status["log"]).read_text("utf-8")
    assert "known URLs are looked at while the crawl runs" in log
    assert "all URLs are visited without validators" in log
    assert len(expected.in_index) == 1 + 2 * _PAGES
    assert (found.codes, found.in_index, set(found.versions)) == (
        expected.codes,
        expected.in_index,
        set(expected.versions),
    )
    assert Counter(found.requested) == Counter(expected.requested)
    assert found.counts["deleted"] == expected.counts["deleted"] == 1 + 2 * _PAGES
    assert found.ended.status["force_recrawl"] is None
    assert again.requested == []
    assert back.in_index == set(back.versions) == expected_back.in_index


@pytest.mark.few(1)
@pytest.mark.parametrize("killed_at", ["links.mid:3", "links.mid:9", "row.updated:1", "batch.sealed"])
def test_edit_when_the_process_is_killed_between_two_slices_then_the_next_run_ends_the_same(
    project: CrawlProject, killed_at: str
) -> None:
    crawl_edited(project, HOST, _BEFORE)

    killed = crawl_edited(project, HOST, _AFTER, **SLICED, SEARCHCRAWL_FAILPOINT=killed_at)
    found = run(project, **SLICED)
    again = run(project, **SLICED)

    assert killed.ended.exit_code == -9
    assert found.ended.exit_code == 0
    assert found.in_index == set(found.versions) == {f"{HOST}/", *_list_after(HOST)}
    assert again.requested == []


def test_edit_when_runs_are_cut_short_between_slices_then_no_page_is_visited_twice(project: CrawlProject) -> None:
    crawl_edited(project, HOST, _BEFORE)
    edit(project, HOST, _AFTER)

    runs = [run(project, "-a", "limit=5", **SLICED) for _ in range(3)]
    runs.append(run(project, **SLICED))

    assert [each.ended.exit_code for each in runs] == [3, 3, 3, 0]
    requested = Counter(url for each in runs for url in each.requested)
    assert set(requested) >= {f"{HOST}/", *_list_after(HOST)}
    assert [url for url, times in requested.items() if times > 1] == []
    assert runs[-1].in_index == set(runs[-1].versions) == {f"{HOST}/", *_list_after(HOST)}


def test_edit_when_rows_are_to_be_visited_then_none_is_before_it_was_looked_at(project: CrawlProject) -> None:
    scope = {"include_hosts": [LATE]}
    cut_short = crawl_edited(project, LATE, scope, "-a", "limit=1")

    # All other rows are to do, and none of them is a page any more.
    found = crawl_edited(project, LATE, {**scope, "strip_parameters": ["sid"]}, **SLICED)

    assert cut_short.ended.exit_code == 3
    assert [url for url in found.requested if "sid=1" in url] == []
    assert found.in_index == set(found.versions) == {f"{LATE}/", *(f"{LATE}/q?n={number}" for number in range(_PAGES))}
    assert {found.codes[f"{LATE}/q?n={number}&sid=1"] for number in range(_PAGES)} == {955}


@pytest.mark.parametrize("starts", [["/"], ["/", "/new/a"]], ids=["a link", "a start URL"])
def test_edit_when_a_row_that_was_rewritten_is_named_as_it_is_then_it_stays(
    project: CrawlProject, starts: list[str]
) -> None:
    def crawl(*rules: dict[str, str], **variables: str) -> Run:
        start = {"urls": [project.site.url(MOVING, path) for path in starts]}
        project.edit(**source(project.site, MOVING) | {"start": start, "rewrite": list(rules)})
        return run(project, **variables)

    rewritten = crawl({"match": r"/old/(.*)$", "replace": r"/new/\1"})
    found = crawl(**SLICED)

    assert f"{MOVING}/new/a" in rewritten.in_index
    assert found.in_index == set(found.versions) == rewritten.in_index | {f"{MOVING}/old/a"}


def test_edit_when_rows_are_reopened_and_refused_again_then_none_is_visited(project: CrawlProject) -> None:
    scope = {"include_hosts": [HOST]}
    stripped = {**scope, "strip_parameters": ["sid"]}
    crawl_edited(project, HOST, stripped)

    # Its rows are no identities any more, are again, and the run ends before it has visited them.
    crawl_edited(project, HOST, scope)
    crawl_edited(project, HOST, stripped)
    cut_short = crawl_edited(project, HOST, scope, "-a", "limit=1")
    found = crawl_edited(project, HOST, {**scope, "strip_parameters": ["sid", "x"]}, **SLICED)

    assert cut_short.ended.exit_code == 3
    assert [url for url in found.requested if "sid=1" in url] == []
    assert found.in_index == set(found.versions) == {f"{HOST}/", *_list_after(HOST)}


def test_edit_when_two_rewriters_change_places_then_each_page_stays(project: CrawlProject) -> None:
    def crawl(*pairs: tuple[str, str], **variables: str) -> Run:
        rules = [{"match": f"/{old}$", "replace": f"/{new}"} for old, new in pairs]
        project.edit(**source(project.site, SWAPPED), rewrite=rules)
        return run(project, **variables)

    first = crawl(("x", "b"), ("y", "c"))
    found = crawl(("x", "c"), ("y", "b"), **SLICED)
    at_once = crawl(("x", "b"), ("y", "c"))

    assert first.in_index == found.in_index == at_once.in_index == {f"{SWAPPED}/", f"{SWAPPED}/b", f"{SWAPPED}/c"}
    assert set(at_once.versions) == at_once.in_index


def test_edit_when_a_host_has_many_rows_then_others_are_asked_before_it_has_none(project: CrawlProject) -> None:
    slow = {"retries": 0, "delay_seconds": 0.3}
    edit(project, HOST, _BEFORE, fetch=slow)
    run(project)
    edit(project, HOST, _BEFORE, fetch=slow, keep={"exclude_urls": ["*/none"]})
    found = run(project, **SLICED)

    hosts = [entry["host"] for entry in found.log if not entry["path"].startswith(("/robots", "/sitemap"))]
    assert hosts.index(OTHER) < len(hosts) // 2


def test_forgotten_list_when_it_is_half_applied_and_taken_back_then_all_pages_come_back(project: CrawlProject) -> None:
    forgotten = project.folder / "forgotten.txt"
    # One of the first rows.
    first = crawl_edited(project, HOST, {"include_hosts": [HOST]})
    forgotten.write_text(f"{project.site.url(HOST, '/0')}\n", "utf-8")
    killed = run(project, **SLICED, SEARCHCRAWL_FAILPOINT="links.mid:4")
    forgotten.write_text("", "utf-8")
    found = run(project, **SLICED)

    assert killed.ended.exit_code == -9
    assert killed.codes[f"{HOST}/0"] != 200
    assert found.codes == first.codes


def test_edit_when_refused_urls_are_allowed_again_then_max_urls_counts_each_once(project: CrawlProject) -> None:
    first = crawl_edited(project, HOST, {**_BEFORE, "host": [{"host": HOST, "exclude_paths": ["/p"]}]})
    allowed = {"include_hosts": [HOST], "max_urls": 1 + _PAGES + 3}

    cut_short = crawl_edited(project, HOST, allowed, "-a", "limit=1")
    found = run(project, **SLICED)

    assert cut_short.ended.exit_code == 3
    assert len([url for url in first.in_index if url.startswith(HOST)]) == 1 + _PAGES
    assert len(found.in_index) == 1 + _PAGES + 3


def _list_after(host: str) -> list[str]:
    return [f"{host}/{path}" for number in range(_PAGES) for path in (f"{number}", f"p?n={number}")]
