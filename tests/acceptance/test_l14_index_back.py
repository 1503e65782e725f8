"""What waited for an index that was away: in which order it comes, within which limits, and what commands make of it (L14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl import urls
from tests.acceptance import test_f4_shared_copies as shared
from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_quarantine import decide
from tests.acceptance.support_receivers import BOTH, HOST, HURRY, NAMES, assert_same, build, in_index, set_receivers
from tests.acceptance.support_stories import page, source
from tests.acceptance.test_index_away import _solr
from tests.acceptance.test_l14_index_away import ALL, at, bring_back, in_both, link, take_away
from tests.scripted_solr import ScriptedSolr, good, tolerant
from tests.site.client import SiteProcess

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("clean_site")]

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
