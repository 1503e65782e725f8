"""Receivers while the index is away: what comes, changes and goes meanwhile they have at once, and the index in the end (L14)."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, absent_index
from tests.acceptance.support_quarantine import decide, is_verified
from tests.acceptance.support_receivers import (
    BOTH,
    HOST,
    NAMES,
    assert_same,
    build,
    in_index,
    in_lines,
    set_receivers,
)
from tests.acceptance.support_stories import page
from tests.site.client import SiteProcess

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("clean_site")]

ALL: Final = {f"{HOST}/", *(f"{HOST}/{name}.html" for name in NAMES)}


def take_away(project: CrawlProject, given: dict[str, Any] = BOTH) -> None:
    """Has the index be away until ``bring_back``."""
    set_receivers(project, given, index=absent_index())


def bring_back(project: CrawlProject, given: dict[str, Any] = BOTH) -> None:
    set_receivers(project, given, index={"type": "local"})


def link(site: SiteProcess, *names: str) -> None:
    """Has the start page name these pages."""
    site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in names)))


def in_both(project: CrawlProject) -> set[str]:
    """The short URLs of the documents that both receivers have."""
    there = set(in_lines(project))
    assert set(in_index(project, "second")) == there
    return there


def at(*names: str) -> set[str]:
    return {f"{HOST}/", *(f"{HOST}/{name}.html" for name in names)}


def test_index_when_it_was_never_there_then_receivers_are_right_in_each_run_and_it_is_at_the_end(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site)
    take_away(project)
    found = []
    for number in range(3):
        found.append((project.crawl().exit_code, in_both(project)))
        site.set_page(HOST, "/a.html", page(f"page a {number}"))
        site.set_page(HOST, f"/new{number}.html", page(f"new {number}"))
        for gone in (f"/{NAMES[number + 1]}.html", f"/new{number - 1}.html"):
            site.delete_page(HOST, gone)
        link(site, *NAMES, *(f"new{each}" for each in range(number + 1)))
    bring_back(project)
    back = project.crawl()

    assert found == [(6, ALL), (6, at("a", "c", "d", "new0")), (6, at("a", "d", "new1"))]
    assert back.exit_code == 0
    assert in_lines(project)[f"{HOST}/a.html"] == "page a 2"
    assert in_both(project) == at("a", "new2")
    assert_same(project)
    assert is_verified(project)


def test_pages_when_they_go_and_come_back_while_the_index_is_away_then_all_have_them(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site)
    project.crawl()
    take_away(project)
    for name in "abd":
        site.delete_page(HOST, f"/{name}.html")
    away = project.crawl()
    without = in_both(project)
    site.set_page(HOST, "/a.html", page("page a"))
    project.crawl()
    again = in_both(project)
    bring_back(project)
    site.set_page(HOST, "/b.html", page("page b"))
    back = project.crawl()

    assert (without, again) == (at("c"), at("a", "c"))
    assert in_both(project) == at("a", "b", "c")
    assert_same(project)
    assert is_verified(project)
    # The run that counts a removal is the one that can be taken back.
    assert (away.counts["deleted"], back.counts["deleted"]) == (0, 1)
    assert project.ask("undelete", project.last_run())["documents"] == 1
    assert set(in_index(project)) == ALL


@pytest.mark.parametrize("orphans", ["delete", "check"])
def test_orphans_when_the_index_is_away_then_receivers_lose_those_that_it_will_lose(
    site: SiteProcess, tmp_path: Path, orphans: str
) -> None:
    project = build(tmp_path, site, lifecycle={"orphans": orphans, "max_delete_percent": 100})
    # A copy takes the place of the orphan.
    site.set_page(HOST, "/far/away/copy-of-b.html", page("page b"))
    link(site, *NAMES, "far/away/copy-of-b")
    project.crawl()
    before = in_both(project)
    take_away(project)
    link(site, "a", "far/away/copy-of-b")
    project.crawl()
    meanwhile = in_both(project)
    bring_back(project)
    project.crawl()

    assert before == ALL
    assert meanwhile == (at("a", "far/away/copy-of-b") if orphans == "delete" else ALL)
    assert in_both(project) == meanwhile
    assert_same(project)
    assert is_verified(project)


@pytest.mark.parametrize("known", [True, False])
def test_copy_when_its_survivor_comes_while_the_index_is_away_then_all_have_one_of_both(
    site: SiteProcess, tmp_path: Path, known: bool
) -> None:
    project = build(tmp_path, site)
    site.set_page(HOST, "/long/way/to/copy.html", page("the same", text="the same text on both"))
    link(site, "long/way/to/copy")
    if known:
        project.crawl()
    take_away(project)
    project.crawl()
    before = in_both(project)
    site.set_page(HOST, "/copy.html", page("the same", text="the same text on both"))
    link(site, "long/way/to/copy", "copy")
    project.crawl()
    meanwhile = in_both(project)
    bring_back(project)
    project.crawl()

    assert (before, meanwhile) == (at("long/way/to/copy"), at("copy"))
    assert in_both(project) == meanwhile
    assert_same(project)
    assert is_verified(project)


def test_site_when_all_of_it_is_gone_while_the_index_is_away_then_the_limits_hold_for_all(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, lifecycle={"max_delete_documents": 1, "max_delete_percent": 100})
    take_away(project)
    project.crawl()
    for name in NAMES:
        site.delete_page(HOST, f"/{name}.html")
    for _ in range(3):
        project.crawl()
    meanwhile = in_both(project)
    bring_back(project)
    back = project.crawl()
    held = in_both(project)
    assert set(in_index(project)) == ALL
    assert is_verified(project)
    decide(project, "approve", "--run", "2")

    assert back.exit_code == 9
    assert (meanwhile, held) == (ALL, ALL)
    assert in_both(project) == {f"{HOST}/"}
    assert_same(project)
    assert is_verified(project)


def test_removals_when_some_leave_in_each_run_without_the_index_then_the_limits_count_them_together(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, lifecycle={"max_delete_documents": 2, "max_delete_percent": 100})
    project.crawl()
    take_away(project)
    for name in NAMES[:3]:
        site.delete_page(HOST, f"/{name}.html")
        project.crawl()

    # Three left within a day, where two may.
    assert in_both(project) == at("c", "d")


@pytest.mark.few(2)
@pytest.mark.parametrize("point", ["delete.selected", "closing.step", "closing.step:3"])
@pytest.mark.parametrize("comes_back", [True, False])
def test_run_when_killed_at_its_end_without_the_index_then_the_next_one_is_right(
    site: SiteProcess, tmp_path: Path, point: str, comes_back: bool
) -> None:
    project = build(tmp_path, site)
    project.crawl()
    take_away(project)
    site.delete_page(HOST, "/b.html")
    site.set_page(HOST, "/new.html", page("new"))
    link(site, *NAMES, "new")
    killed = project.crawl(SEARCHCRAWL_FAILPOINT=point)
    if comes_back:
        bring_back(project)
    again = project.crawl()
    meanwhile = in_both(project)
    bring_back(project)
    project.crawl()

    assert (killed.exit_code, again.exit_code) == (-signal.SIGKILL, 0 if comes_back else 6)
    assert meanwhile == at("a", "c", "d", "new")
    assert_same(project)
    assert is_verified(project)


def test_delta_when_the_index_is_away_then_it_is_written_and_says_nothing_twice(
    site: SiteProcess, tmp_path: Path
) -> None:
    files = {"changes": {"type": "files", "path": "%(name)s-%(delta)s.jsonl", "delta": True}}
    project = build(tmp_path, site, files)
    project.crawl()
    take_away(project, files)
    site.delete_page(HOST, "/b.html")
    site.set_page(HOST, "/a.html", page("page a anew"))
    project.crawl()
    bring_back(project, files)
    project.crawl()

    deltas = sorted(tmp_path.glob("demo-*.jsonl"))
    last = [json.loads(line) for line in deltas[-1].read_text("utf-8").splitlines()]
    assert [path.name for path in deltas] == ["demo-000001.jsonl", "demo-000002.jsonl"]
    assert sorted((row["deleted"], row.get("title", "")) for row in last) == [(False, "page a anew"), (True, "")]
    assert set(in_index(project)) == at("a", "c", "d")
