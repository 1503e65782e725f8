"""A store that was put back from a copy, or lost, beside a newer index and cache: one run makes them true again (L4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests import backends
from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_stories import page, run, source
from tests.crawl_forks import CLOCK, COMMANDS
from tests.site.client import SiteProcess, configure

pytestmark = pytest.mark.extended

HOST: Final = "back.acme.test"
NAMES: Final = tuple(f"page{number:02}" for number in range(16))
LATER: Final = tuple(f"later{number:02}" for number in range(4))
DAY: Final = 86_400


def word(name: str, version: int = 1) -> str:
    """A word that this version of a page has, and no other page."""
    return f"text{name}v{version}"


class Site:
    """The pages of a site; ``pages`` is {name: number of its text}."""

    def __init__(self, site: SiteProcess) -> None:
        self.site = site
        self.pages = dict.fromkeys(NAMES, 1)
        for name in NAMES:
            self.set(name, 1)

    def set(self, name: str, version: int) -> None:
        self.pages[name] = version
        self.site.set_page(HOST, f"/{name}.html", page(word(name, version)))
        self._link()

    def delete(self, name: str) -> None:
        del self.pages[name]
        self.site.delete_page(HOST, f"/{name}.html")
        self._link()

    def _link(self) -> None:
        self.site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in self.pages)))


@pytest.fixture
def site(site: SiteProcess) -> Site:
    site.reset()
    return Site(site)


@pytest.fixture
def project(site: Site, tmp_path: Path) -> CrawlProject:
    return new_project(tmp_path / "project", site.site, **source(site.site, HOST))


def copy(project: CrawlProject) -> Path:
    return backends.current.copy(project.folder, project.folder.with_name("saved"))


def lose_or_put_back(project: CrawlProject, saved: Path, *, is_lost: bool) -> None:
    if is_lost:
        backends.current.lose_store(project.folder)
    else:
        backends.current.put_back("store", saved, project.folder)


def live_a_week(project: CrawlProject, site: Site) -> None:
    """What happened after the copy of the store: pages came, went, changed, and changed back."""
    site.set("page01", 2)
    site.set("page02", 2)
    site.delete("page03")
    for name in LATER:
        site.set(name, 1)
    run(project)
    site.set("page02", 1)
    site.delete("page04")
    site.set("page05", 2)
    run(project)


def put_back_after_a_week(project: CrawlProject, site: Site, *, is_lost: bool = False) -> None:
    """A run, a week, and a store that knows nothing of that week, or nothing at all."""
    run(project)
    saved = copy(project)
    live_a_week(project, site)
    lose_or_put_back(project, saved, is_lost=is_lost)


def wrong(project: CrawlProject, site: Site) -> list[str]:
    """The pages that are not found by their present text, alone; and what is there besides the pages."""
    urls = {f"{HOST}/", *(f"{HOST}/{name}.html" for name in site.pages)}
    lost = [
        name for name, version in site.pages.items() if project.found(word(name, version)) != [f"{HOST}/{name}.html"]
    ]
    return lost + [url for url in project.indexed() if url not in urls]


def assert_verified(project: CrawlProject) -> None:
    assert {kind: urls for kind, urls in project.ask("verify", "demo").items() if urls} == {"ok": True}


def assert_true(project: CrawlProject, site: Site) -> None:
    """Index, store and site agree."""
    assert wrong(project, site) == []
    assert_verified(project)


@pytest.mark.few(1)
@pytest.mark.matrix
@pytest.mark.parametrize("preserve", [True, False])
@pytest.mark.parametrize("clock", [0, -30 * DAY], ids=["", "clock behind"])
def test_store_when_put_back_then_one_run_makes_index_and_store_true(
    project: CrawlProject, site: Site, preserve: bool, clock: int
) -> None:
    configure(project.folder, cache={"preserve": preserve, "threshold_mb": 0.0005})
    run(project)
    saved = copy(project)
    live_a_week(project, site)
    # Changed while nothing looked.
    site.set("page06", 2)
    site.delete("later01")
    backends.current.put_back("store", saved, project.folder)

    said = project.ask("status", "demo")["warnings"]
    after = run(project, **{CLOCK: str(clock)})
    status = project.ask("status", "demo")

    assert [warning["code"] for warning in said if warning["code"] != "cache"] == ["store_older"]
    assert "searchcrawl crawl demo" in said[0]["message"]
    assert (after.ended.exit_code, after.counts["deleted"]) == (0, 1)
    assert_true(project, site)
    assert status["documents"] == len(project.indexed())
    assert run(project, **{CLOCK: str(clock)}).counts["indexed"] == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("clock", [0, -30 * DAY], ids=["", "clock behind"])
def test_store_when_it_is_lost_then_the_documents_of_the_index_are_taken_over(
    project: CrawlProject, site: Site, clock: int
) -> None:
    run(project)
    live_a_week(project, site)
    # No page links to it any more, and it is gone.
    site.delete("page07")
    site.site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in site.pages if name != "page08")))
    backends.current.lose_store(project.folder)

    after = run(project, **{CLOCK: str(clock)})

    assert (after.ended.exit_code, after.counts["deleted"]) == (0, 1)
    assert_true(project, site)


def test_store_when_put_back_and_many_pages_are_gone_then_they_wait_in_quarantine(
    project: CrawlProject, site: Site
) -> None:
    run(project)
    saved = copy(project)
    added = [f"added{number:02}" for number in range(14)]
    for name in added:
        site.set(name, 1)
    run(project)
    before = len(project.indexed())
    for name in added:
        site.delete(name)
    backends.current.put_back("store", saved, project.folder)

    after = run(project)

    assert (after.ended.exit_code, after.counts["deleted"]) == (9, 0)
    assert len(project.indexed()) == before
    assert project.command("quarantine", "approve", "demo").returncode == 0
    assert_true(project, site)


def test_store_when_put_back_and_the_site_is_down_then_nothing_leaves_the_index(
    project: CrawlProject, site: Site
) -> None:
    put_back_after_a_week(project, site)
    before = project.versions()
    site.site.set_behaviour(HOST, status=503)

    down = [run(project) for _ in range(2)]
    kept = project.versions()
    site.site.clear_behaviours()
    after = run(project)

    assert sum(each.counts["deleted"] for each in down) == 0
    assert kept == before
    assert after.ended.exit_code == 0
    assert_true(project, site)


@pytest.mark.few(1)
@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "put back"])
@pytest.mark.parametrize("body", ["we are back soon, reference {}", ""], ids=["soon", "empty"])
def test_store_when_lost_or_put_back_and_no_page_has_a_text_of_its_own_then_the_documents_stay(
    project: CrawlProject, site: Site, is_lost: bool, body: str
) -> None:
    run(project)
    saved = copy(project)
    live_a_week(project, site)
    for name in NAMES[6:]:
        site.set(name, 3)
    run(project)
    before = set(project.indexed())
    lose_or_put_back(project, saved, is_lost=is_lost)
    texts = dict(site.pages)
    for number, name in enumerate(texts):
        text = body.format(number * 7919)
        site.site.set_page(HOST, f"/{name}.html", page("Soon", text=text) if text else "<html><body></body></html>")

    run(project)
    kept = set(project.indexed())
    for name, version in texts.items():
        site.set(name, version)
    after = run(project)

    assert kept == before
    assert after.ended.exit_code == 0
    assert_true(project, site)


def test_store_when_put_back_while_the_index_is_away_then_nothing_is_sent_before_both_are_compared(
    project: CrawlProject, site: Site
) -> None:
    put_back_after_a_week(project, site)
    toml = (project.folder / "searchcrawl.toml").read_text("utf-8")
    configure(project.folder, index=absent_index())

    away = project.crawl("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=1").exit_code
    (project.folder / "searchcrawl.toml").write_text(toml, "utf-8")
    versions = project.versions()
    flushed = project.command("flush", "demo")
    unchanged = project.versions()
    after = run(project)

    assert away == 6
    assert (flushed.returncode, "searchcrawl crawl demo" in flushed.stderr) == (6, True)
    assert unchanged == versions
    assert after.ended.exit_code == 0
    assert_true(project, site)


def test_resend_when_the_store_was_put_back_then_newer_documents_stay_until_the_run(
    project: CrawlProject, site: Site
) -> None:
    put_back_after_a_week(project, site)

    first = project.command("resend", "demo", "--json")
    kept = project.found(word("page01", 2))
    after = run(project)

    assert first.returncode == 1
    assert json.loads(first.stdout)["to_fetch"] > len(LATER)
    assert kept == [f"{HOST}/page01.html"]
    assert after.ended.exit_code == 0
    assert_true(project, site)
    assert project.command("resend", "demo").returncode == 0


def test_store_when_put_back_with_removals_under_way_then_a_page_that_came_back_stays(
    project: CrawlProject, site: Site
) -> None:
    run(project)
    site.delete("page09")
    killed = COMMANDS.run(project.folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT="delete.selected")
    saved = copy(project)
    run(project)
    site.set("page09", 2)
    run(project)
    backends.current.put_back("store", saved, project.folder)

    after = run(project)

    assert killed.returncode == -9
    assert (after.ended.exit_code, after.counts["deleted"]) == (0, 0)
    assert_true(project, site)


def test_repair_when_the_store_was_put_back_then_no_newer_text_is_removed_or_overwritten_and_nothing_comes_back(
    project: CrawlProject, site: Site
) -> None:
    put_back_after_a_week(project, site)
    before = project.versions()

    mended = project.command("verify", "demo", "--repair", "--yes", "--json")
    kept = project.versions()
    shown = project.found(word("page01", 2))
    after = run(project)

    assert (mended.returncode, "searchcrawl crawl demo" in mended.stderr) == (1, True)
    # It changed and changed back: the index has the text that the store knows.
    same = f"{HOST}/page02.html"
    assert kept.pop(same) > before.pop(same)
    assert kept == before
    assert shown == [f"{HOST}/page01.html"]
    assert after.ended.exit_code == 0
    assert_true(project, site)


@pytest.mark.parametrize("is_lost", [False, True], ids=["put-back", "lost"])
def test_forget_when_the_store_does_not_know_the_document_then_exit_6_and_it_leaves_with_the_run(
    project: CrawlProject, site: Site, is_lost: bool
) -> None:
    put_back_after_a_week(project, site, is_lost=is_lost)
    url = f"{HOST}/later00.html"

    forgotten = project.command("forget", site.site.url(HOST, "/later00.html"))
    before = project.indexed()
    after = run(project)
    again = project.command("forget")

    assert url in before
    assert (forgotten.returncode, "searchcrawl crawl demo brings both together" in forgotten.stderr) == (6, True)
    assert (after.ended.exit_code, url in after.requested, url in project.indexed()) == (0, False, False)
    assert (again.returncode, again.stderr) == (0, "")
    assert_verified(project)
