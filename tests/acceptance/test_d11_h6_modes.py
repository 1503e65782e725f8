"""Runs that deliver nothing, and runs that follow no links: nothing is removed by them, and nothing is lost (D11, H6)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, Tell, page, pages, run, source
from tests.site.client import SiteProcess, configure

pytestmark = pytest.mark.extended

HOST = "modes.acme.test"
ALL = {f"{HOST}/", *(f"{HOST}/{name}.html" for name in "abcd")}
#: Of pages that come and go; each is another one.
EDITED = {f"{HOST}/", *(f"{HOST}/{name}.html" for name in "abde")}
UNDELIVERED: tuple[dict[str, Any], ...] = ({"mode": "examine"}, {"test": True})


def _edit(project: CrawlProject, **top: Any) -> None:
    project.edit(**source(project.site, HOST), **top)


def _fill(project: CrawlProject) -> None:
    pages(project.site, HOST, a=page("alpha"), b=page("beta"), c=page("gamma"), d=page("delta"))


def _change(project: CrawlProject) -> None:
    """One page changes, one is gone, one is new."""
    site = project.site
    site.set_page(HOST, "/b.html", page("beta", text="another text"))
    site.delete_page(HOST, "/c.html")
    site.set_page(HOST, "/e.html", page("epsilon"))
    site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in "abcde")))


def _first(project: CrawlProject, top: dict[str, Any]) -> list[Run]:
    _fill(project)
    _edit(project, **top)
    runs = [run(project), run(project)]
    _edit(project)
    return [*runs, run(project), run(project)]


def _known(project: CrawlProject, top: dict[str, Any]) -> list[Run]:
    _fill(project)
    _edit(project)
    runs = [run(project)]
    _edit(project, **top)
    _change(project)
    runs += [run(project), run(project)]
    _edit(project)
    return [*runs, run(project), run(project)]


def _kill(project: CrawlProject, failpoint: str, **top: Any) -> None:
    _edit(project, **top)
    assert project.crawl(SEARCHCRAWL_FAILPOINT=failpoint).exit_code == -signal.SIGKILL


def _killed(project: CrawlProject, top: dict[str, Any]) -> list[Run]:
    """Each run is killed in the midst of it, and the next one has another mode."""
    _fill(project)
    runs = []
    for failpoint in ("batch.post.mid", "batch.sealed", "delete.selected"):
        _kill(project, failpoint)
        before = project.versions()
        _kill(project, "shutdown.begin", **top)
        runs.append(run(project))
        assert runs[-1].versions == before
        if failpoint == "batch.post.mid":
            _change(project)
    _edit(project)
    return [*runs, run(project), run(project)]


def _many_gone(project: CrawlProject) -> list[Run]:
    """More pages are gone than may leave at once."""
    site = project.site
    names = [f"p{number}" for number in range(14)]
    pages(site, HOST, **{name: page(name) for name in names})
    _edit(project)
    runs = [run(project)]
    for name in names[1:]:
        site.delete_page(HOST, f"/{name}.html")
    _edit(project, mode="examine")
    runs += [run(project), run(project)]
    _edit(project)
    return [*runs, run(project)]


def _limited_cache(project: CrawlProject, **cache: float) -> list[Run]:
    _fill(project)
    configure(project.folder, cache=cache)
    _edit(project, mode="examine")
    runs = [run(project)]
    _edit(project)
    return [*runs, run(project)]


def _index_only(project: CrawlProject) -> list[Run]:
    _fill(project)
    _edit(project)
    runs = [run(project)]
    _edit(project, mode="index_only")
    _change(project)
    # One that nothing leads to any more, and a list of pages with one that is not known.
    project.site.set_page(
        HOST, "/sitemap.xml", f"http://{HOST}:{project.site.port}/f.html\n", content_type="text/plain"
    )
    project.site.set_page(HOST, "/f.html", page("phi"))
    runs += [run(project), run(project)]
    _edit(project)
    return [*runs, run(project), run(project)]


def _index_only_first(project: CrawlProject) -> list[Run]:
    _fill(project)
    _edit(project, mode="index_only")
    runs = [run(project)]
    _edit(project)
    return [*runs, run(project)]


def _moved(project: CrawlProject) -> list[Run]:
    """A page moves to one that is not known, and another names one that is not known as canonical."""
    site = project.site
    _fill(project)
    _edit(project)
    runs = [run(project)]
    _edit(project, mode="index_only")
    site.set_page(HOST, "/a.html", "", status=301, headers={"Location": "/new.html"})
    site.set_page(HOST, "/new.html", page("new"))
    site.set_page(HOST, "/b.html", page("beta", head='<link rel="canonical" href="/better.html">'))
    site.set_page(HOST, "/better.html", page("better"))
    runs.append(run(project))
    _edit(project)
    return [*runs, run(project)]


STORIES = {
    "examine first": lambda project: _first(project, UNDELIVERED[0]),
    "test first": lambda project: _first(project, UNDELIVERED[1]),
    "examine known": lambda project: _known(project, UNDELIVERED[0]),
    "test known": lambda project: _known(project, UNDELIVERED[1]),
    "examine killed": lambda project: _killed(project, UNDELIVERED[0]),
    "test killed": lambda project: _killed(project, UNDELIVERED[1]),
    "many gone": _many_gone,
    # It passes its threshold in the midst of a run; it takes one page.
    "small cache": lambda project: _limited_cache(project, threshold_mb=0.0005),
    "full cache": lambda project: _limited_cache(project, threshold_mb=0.0001, max_gb=0.0000002),
    "index only": _index_only,
    "index only first": _index_only_first,
    "moved": _moved,
}


def _not_delivered(run: Run) -> str:
    """What a run says that delivered nothing."""
    return next(one["message"] for one in run.ended.status["warnings"] if one["code"] == "no_delivery")


@pytest.mark.parametrize("name", ["examine first", "test first"])
def test_first_run_when_it_delivers_nothing_then_rows_and_no_document_and_a_later_one_delivers_all(
    tell: Tell, name: str
) -> None:
    first, second, third, fourth = tell(name)

    assert (first.ended.exit_code, second.ended.exit_code) == (0, 0)
    assert (set(first.codes), first.versions, first.in_index) == (ALL, {}, set())
    assert (first.counts["fetched"], first.counts["new"], first.counts["indexed"]) == (5, 5, 0)
    assert (first.ended.status["waiting"], first.ended.status["force_recrawl"]) == (5, None)
    assert "5 documents" in _not_delivered(first)
    assert (second.versions, second.counts["not_modified"]) == ({}, 5)
    assert (set(third.versions), third.counts["indexed"], third.counts["fetched"]) == (ALL, 5, 5)
    assert (third.bodies, third.ended.status["waiting"]) == (0, 0)
    assert not [one for one in third.ended.status["warnings"] if one["code"] == "no_delivery"]
    assert fourth.counts["indexed"] == 0


@pytest.mark.parametrize("name", ["examine known", "test known"])
def test_known_documents_when_a_run_delivers_nothing_then_they_stay_as_they_are(tell: Tell, name: str) -> None:
    before, first, second, after, last = tell(name)

    for each in (first, second):
        assert (each.versions, each.counts["indexed"], each.counts["deleted"]) == (before.versions, 0, 0)
        assert "3 documents" in _not_delivered(each)
        assert "remove 1" in _not_delivered(each)
    assert (first.counts["new"], first.counts["changed"], first.codes[f"{HOST}/c.html"]) == (1, 2, 404)
    assert set(after.versions) == EDITED
    assert {url for url in ALL & EDITED if after.versions[url] != before.versions[url]} == {
        f"{HOST}/b.html",
        f"{HOST}/",
    }
    assert (after.counts["indexed"], after.counts["deleted"]) == (3, 1)
    assert (last.counts["indexed"], last.counts["deleted"]) == (0, 0)


@pytest.mark.parametrize("name", ["examine killed", "test killed"])
def test_modes_when_switched_back_and_forth_and_killed_then_nothing_is_removed_by_them_and_nothing_lost(
    tell: Tell, name: str
) -> None:
    first, second, third, after, last = tell(name)

    assert [each.ended.exit_code for each in (first, second, third)] == [0, 0, 0]
    assert set(second.versions) == ALL
    assert set(third.versions) == ALL | EDITED
    assert (set(after.versions), after.ended.status["waiting"]) == (EDITED, 0)
    assert (last.counts["indexed"], last.counts["deleted"]) == (0, 0)


def test_examine_when_more_is_gone_than_may_leave_then_it_says_so_and_a_later_run_holds_back(tell: Tell) -> None:
    before, first, second, after = tell("many gone")

    for each in (first, second):
        assert (each.versions, each.ended.exit_code) == (before.versions, 0)
        assert (each.ended.status["quarantined"], each.counts["deleted"]) == (0, 0)
        assert "remove 13" in _not_delivered(each)
        assert "quarantine" in _not_delivered(each)
    assert (after.ended.exit_code, after.ended.status["quarantined"]) == (9, 13)
    assert set(after.versions) == set(before.versions)


def test_examine_when_the_cache_passes_its_threshold_then_nothing_is_sent(tell: Tell) -> None:
    first, after = tell("small cache")

    assert (first.versions, first.ended.status["waiting"]) == ({}, 5)
    assert set(after.versions) == ALL


def test_examine_when_the_cache_is_full_then_the_run_ends_early_and_a_later_one_goes_on(tell: Tell) -> None:
    first, after = tell("full cache")

    assert (first.ended.exit_code, first.ended.status["run"]["end_reason"]) == (3, "index_away")
    assert first.versions == {}
    assert (after.ended.exit_code, set(after.versions)) == (0, ALL)


def test_index_only_when_known_pages_change_then_they_are_indexed_and_no_url_is_new(tell: Tell) -> None:
    before, first, second, after, last = tell("index only")

    for each in (first, second):
        assert (set(each.codes), each.ended.exit_code) == (ALL, 0)
        assert set(each.versions) == ALL - {f"{HOST}/c.html"}
        assert not [path for path in each.requested if "sitemap" in path or "e.html" in path or "f.html" in path]
    assert {url for url in first.versions if first.versions[url] != before.versions[url]} == {
        f"{HOST}/b.html",
        f"{HOST}/",
    }
    # Nothing that is known has to be processed again for it.
    assert first.counts["not_modified"] == 2
    assert second.ended.status["force_recrawl"] is None
    # What these runs did not read of unchanged pages is read now.
    assert (set(after.versions), after.counts["not_modified"]) == (EDITED | {f"{HOST}/f.html"}, 0)
    assert after.ended.status["force_recrawl"] is None
    assert last.counts["not_modified"] == 6


def test_index_only_when_nothing_is_known_then_the_start_urls_are_indexed(tell: Tell) -> None:
    first, after = tell("index only first")

    assert set(first.versions) == set(first.codes) == {f"{HOST}/"}
    assert set(after.versions) == ALL


def test_index_only_when_a_page_leads_to_an_unknown_one_then_its_document_stays(tell: Tell) -> None:
    before, first, after = tell("moved")

    assert set(first.codes) == ALL
    assert set(first.versions) == set(before.versions)
    assert set(after.versions) == {f"{HOST}/", *(f"{HOST}/{name}.html" for name in ("c", "d", "new", "better"))}


@pytest.mark.parametrize("words", [("flush", "demo"), ("resend", "demo"), ("quarantine", "approve", "demo")])
def test_commands_that_deliver_when_the_source_delivers_nothing_then_they_are_refused(
    waiting: CrawlProject, words: tuple[str, ...]
) -> None:
    ended = waiting.command(*words)

    assert (ended.returncode, waiting.versions()) == (4, {})
    assert "sources/demo.toml: mode: delivers nothing" in ended.stderr


def test_explain_when_the_source_delivers_nothing_then_the_key_is_named(waiting: CrawlProject) -> None:
    url = waiting.site.url(HOST, "/a.html")

    said = waiting.ask("explain", url)

    file = "sources/demo.toml"
    assert (said["in_index"], said["decided_by"]) == (
        False,
        {
            "step": "index",
            "rule": "examine",
            "file": file,
            "key": "mode",
            "proposal": {"action": "set", "file": file, "key": "mode", "value": "accept"},
        },
    )
    assert "mode: examine" in said["verdict"]


def test_flush_when_all_sources_are_meant_then_those_that_deliver_nothing_are_left_out(waiting: CrawlProject) -> None:
    ended = waiting.command("flush")

    assert (ended.returncode, waiting.versions()) == (0, {})
    assert "mode" in ended.stderr


def test_status_when_an_edit_ends_the_mode_then_it_names_what_reads_everything_again(waiting: CrawlProject) -> None:
    _edit(waiting, mode="index_only")
    only = waiting.ask("status", "demo")
    waiting.crawl()
    _edit(waiting)
    back = waiting.ask("status", "demo")
    _edit(waiting, mode="examine")

    assert only["force_recrawl"] is None
    assert back["force_recrawl"] == "changed: mode"


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrawlProject]:
    """A project with documents that wait because of its mode."""
    with SiteProcess() as site:
        project = new_project(tmp_path_factory.mktemp("waiting"), site)
        _fill(project)
        _edit(project, mode="examine")
        assert project.crawl().exit_code == 0
        yield project
