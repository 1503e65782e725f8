"""Receivers while the index is away: what comes, changes and goes meanwhile they have at once, and the index in the end (L14).

What waited for it comes in the right order, within the limits, and as commands left it.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl import urls
from tests.acceptance import test_f4_shared_copies as shared
from tests.acceptance.support_project import CrawlProject, absent_index
from tests.acceptance.support_quarantine import decide, is_verified
from tests.acceptance.support_receivers import (
    BOTH,
    HOST,
    HURRY,
    NAMES,
    assert_same,
    build,
    in_index,
    in_lines,
    set_receivers,
)
from tests.acceptance.support_stories import page, source
from tests.acceptance.test_index_away import _solr
from tests.scripted_solr import ScriptedSolr, good, tolerant
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


SAME: Final = page("the same", text="the same text on all of these pages")
LINES: Final = {"lines": BOTH["lines"]}
FULL: Final = {"threshold_mb": 0.001, "max_gb": 0.000001}


def set_limit(project: CrawlProject, site: SiteProcess, number: int) -> None:
    lifecycle = {"max_delete_documents": number, "max_delete_percent": 100}
    project.edit(**{**source(site, HOST), "lifecycle": lifecycle})


def add_survivor(site: SiteProcess) -> None:
    site.set_page(HOST, "/copy.html", SAME)
    link(site, *NAMES, "long/way/to/copy", "copy")


def add_copy(site: SiteProcess) -> None:
    site.set_page(HOST, "/long/way/to/copy.html", SAME)
    link(site, *NAMES, "long/way/to/copy")


@pytest.mark.parametrize("how", ["approve", "restore"])
def test_quarantine_when_a_copy_waits_to_leave_then_its_survivor_comes_before(
    site: SiteProcess, tmp_path: Path, how: str
) -> None:
    project = build(tmp_path, site)
    add_copy(site)
    project.crawl()
    site.delete_page(HOST, "/d.html")
    set_limit(project, site, 0)
    project.crawl()
    if how == "restore":
        decide(project, "reject")
    set_limit(project, site, 100)
    take_away(project)
    add_survivor(site)
    project.crawl()
    bring_back(project)
    decide(project, how)

    assert set(in_index(project)) == at("a", "b", "c", "copy")
    assert_same(project)


@pytest.mark.parametrize("back", ["crawl", "flush"])
def test_orphan_when_named_again_while_the_index_is_away_then_all_have_it(
    site: SiteProcess, tmp_path: Path, back: str
) -> None:
    project = build(tmp_path, site, lifecycle={"orphans": "delete", "max_delete_percent": 100})
    project.crawl()
    take_away(project)
    link(site, "a", "c", "d")
    project.crawl()
    without = in_both(project)
    link(site, *NAMES)
    project.crawl()
    again = in_both(project)
    bring_back(project)
    assert project.command(back, "demo").returncode == 0

    assert (without, again) == (at("a", "c", "d"), ALL)
    assert set(in_index(project)) == ALL
    assert_same(project)


def test_pages_of_a_run_without_the_index_when_they_become_copies_then_the_limits_hold(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, lifecycle={"max_delete_documents": 1, "max_delete_percent": 100})
    take_away(project)
    project.crawl()
    for name in NAMES:
        site.set_page(HOST, f"/{name}.html", SAME)
    project.crawl()
    meanwhile = in_both(project)
    bring_back(project)

    assert project.crawl().exit_code == 9
    assert (meanwhile, in_both(project)) == (ALL, ALL)


def test_pattern_when_many_left_without_the_index_then_it_may_not_take_more(site: SiteProcess, tmp_path: Path) -> None:
    project = build(tmp_path, site, lifecycle={"max_delete_documents": 1000, "max_delete_percent": 50})
    names = [f"p{number}" for number in range(25)]
    for name in names:
        site.set_page(HOST, f"/{name}.html", page(f"page {name}"))
    link(site, *names)
    project.crawl()
    for name in names[:13]:
        site.delete_page(HOST, f"/{name}.html")
    take_away(project)
    project.crawl()
    project.command("forget", "pattern:*/p2*")

    assert len(in_both(project)) == 13


def refuse_survivor(site: SiteProcess, folder: Path, solr: ScriptedSolr, **more: Any) -> CrawlProject:
    """A project whose index is back, and refuses what stands for a copy that is to leave."""
    project = build(folder, site, LINES)
    solr.script = [_solr(good)]
    set_receivers(project, LINES, index={"type": "solr", "url": solr.core_url})
    add_copy(site)
    assert project.crawl().exit_code == 0
    take_away(project, LINES)
    add_survivor(site)
    assert project.crawl().exit_code == 6
    bad = urls.document_id("demo", site.url(HOST, "/copy.html"))
    solr.script = [_solr(tolerant({bad: "immense"}))]
    solr.received.clear()
    set_receivers(project, LINES, index={"type": "solr", "url": solr.core_url}, **more)
    return project


def find_deleted(solr: ScriptedSolr) -> list[Any]:
    bodies = [
        each for each in solr.received if isinstance(each.body, dict) and isinstance(each.body.get("delete"), list)
    ]
    return [each.ids for each in bodies]


def test_copy_when_the_index_refuses_its_survivor_then_it_stays_and_counts_for_nothing(
    site: SiteProcess, tmp_path: Path, scripted_solr: ScriptedSolr
) -> None:
    project = refuse_survivor(site, tmp_path, scripted_solr)
    project.crawl()
    set_limit(project, site, 1)
    before = find_deleted(scripted_solr)
    site.delete_page(HOST, "/a.html")
    ended = project.crawl()

    assert before == []
    assert ended.exit_code == 0
    assert [len(ids) for ids in find_deleted(scripted_solr)] == [1]


def test_copy_when_the_index_refuses_its_survivor_and_the_cache_is_full_then_the_run_ends(
    site: SiteProcess, tmp_path: Path, scripted_solr: ScriptedSolr
) -> None:
    project = refuse_survivor(site, tmp_path, scripted_solr, cache=FULL)
    names = [f"new{number}" for number in range(5)]
    for name in names:
        site.set_page(HOST, f"/{name}.html", page(name))
    link(site, *NAMES, "long/way/to/copy", "copy", *names)

    assert project.crawl().exit_code == 0
    assert find_deleted(scripted_solr) == []


def test_copy_of_another_source_when_the_index_is_away_then_no_one_lacks_the_text(
    site: SiteProcess, tmp_path: Path
) -> None:
    for name in "ab":
        shared.set_pages(site, name, t=page("Kettle", text="boil some water"), own=page(f"own of {name}"))
    a, b = (shared.add_source(tmp_path, site, name) for name in "ab")
    second = {"second": {"type": "local"}}
    set_receivers(a, second)
    for each in (a, b):
        each.crawl(*HURRY)
    take_away(a, second)
    site.delete_page(shared.HOSTS["a"], shared.PATHS["a"])
    away = a.crawl(*HURRY)
    meanwhile = in_index(a, "second")
    bring_back(a, second)
    flushed = a.command("flush", "a")
    before = in_index(a)
    a.crawl(*HURRY)

    assert (away.exit_code, flushed.returncode) == (6, 0)
    assert shared.at("a") in meanwhile.keys() & before.keys()
    assert shared.at("a") not in in_index(a)
    assert shared.at("b") in in_index(b)
    assert a.command("verify", "a").returncode == b.command("verify", "b").returncode == 0
