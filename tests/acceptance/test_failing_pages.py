"""Pages that fail run after run: how many runs confirm that a page is gone, or hide its document (D5, L3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.rules.lifecycle import Failures
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import listed
from tests.acceptance.support_stories import Run, page, pages, run, source
from tests.crawl_forks import CLOCK
from tests.site.client import SiteProcess
from tests.stored_rows import query_columns

pytestmark = pytest.mark.extended

HOST: Final = "failing.acme.test"
NAMES: Final = tuple(f"page{number:02}" for number in range(24))
DAY: Final = 86_400


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"text of {name}") for name in NAMES})
        yield new_project(tmp_path, site)


def edit(project: CrawlProject, *, fetch: dict[str, Any] | None = None, **lifecycle: Any) -> None:
    project.edit(**source(project.site, HOST, **{"timeout_seconds": 2.0, **(fetch or {})}), lifecycle=lifecycle)


def path(name: str) -> str:
    return f"/{name}.html"


def gone(project: CrawlProject) -> set[str]:
    """The names of the pages whose documents the index has no more."""
    indexed = set(project.indexed())
    return {name for name in NAMES if f"{HOST}{path(name)}" not in indexed}


def failures(project: CrawlProject, name: str) -> dict[str, int]:
    rows = query_columns(project.folder, f"SELECT failures FROM urls WHERE url LIKE '%{path(name)}'")
    return dict(Failures.parse(rows[0]["failures"]).counts)


def explain(project: CrawlProject, name: str) -> dict[str, Any]:
    return project.ask("explain", project.site.url(HOST, path(name)))


def cut_short(project: CrawlProject, status: int | None = None, **lifecycle: Any) -> Run:
    """A run that visits everything but one page, whose answer comes after the end of the run."""
    project.site.set_behaviour(HOST, path(NAMES[-1]), delay_seconds=4.0, status=status)
    edit(project, fetch={"max_minutes": 0.03, "timeout_seconds": 30.0}, **lifecycle)
    ended = run(project)
    edit(project, **lifecycle)
    return ended


def test_gone_pages_when_confirmations_are_asked_for_then_leave_once_enough_runs_saw_them(
    project: CrawlProject,
) -> None:
    site = project.site
    edit(project, gone_confirmations=3)
    run(project)
    always, between, failing, moved, limit = NAMES[:5]
    for name, status in ((always, 404), (between, 410), (failing, 404), (limit, 410)):
        site.set_behaviour(HOST, path(name), status=status)
    # The page that another one moved to is gone.
    site.set_page(HOST, path(moved), "", status=301, headers={"Location": path(always)})

    first = run(project)
    explained = explain(project, always)
    # One is there again for a run, one fails for another reason.
    site.set_behaviour(HOST, path(between), status=200, body=page("text of it"))
    site.set_behaviour(HOST, path(failing), status=503)
    second = run(project)
    site.set_behaviour(HOST, path(between), status=404)
    site.set_behaviour(HOST, path(failing), status=410)
    third = run(project)
    left = [gone(project)]
    counted = failures(project, failing), failures(project, between)
    run(project)
    left.append(gone(project))
    run(project)
    left.append(gone(project))

    assert [each.counts["deleted"] for each in (first, second)] == [0, 0]
    assert explained["verdict"].startswith("in the index, and leaves once this was seen in 3 runs")
    assert third.counts["deleted"] == 3
    assert left == [{always, moved, limit}, {always, moved, limit, failing}, {always, moved, limit, failing, between}]
    assert counted == ({"gone": 2, "server": 1}, {"gone": 1})


def test_gone_pages_when_one_bad_day_ends_before_the_second_run_then_all_stay(project: CrawlProject) -> None:
    edit(project, gone_confirmations=2, max_delete_percent=100)
    before = run(project)
    project.site.set_behaviour(HOST, status=404)
    # The run of the bad day is cut short, goes on, is killed, and goes on after an edit of the source.
    bad = [cut_short(project, 404, gone_confirmations=2, max_delete_percent=100)]
    project.edit(**source(project.site, HOST, scope={"depth": 5}))
    bad.append(run(project, SEARCHCRAWL_FAILPOINT="row.updated:1"))
    edit(project, gone_confirmations=2, max_delete_percent=100)
    project.site.clear_behaviours()
    project.site.set_behaviour(HOST, status=404)
    bad.append(run(project))
    counted = failures(project, NAMES[0])
    project.site.clear_behaviours()

    after = run(project)

    assert [each.in_index for each in bad] == [before.in_index] * 3
    assert [each.ended.exit_code for each in bad] == [3, -9, 8]
    # All were visited in each part of the run.
    assert len(bad[0].requested) >= len(NAMES) <= len(bad[2].requested)
    assert counted == {"gone": 1}
    assert after.in_index == before.in_index == set(after.versions)
    assert failures(project, NAMES[0]) == {}


@pytest.mark.few(1)
@pytest.mark.matrix
@pytest.mark.parametrize(
    ("status", "mode", "kind", "code"),
    [(503, None, "server", "503"), (403, None, "client", "403"), (None, "reset", "unreachable", "905")],
)
def test_failing_pages_when_they_fail_in_enough_runs_then_are_hidden_until_they_answer(
    project: CrawlProject, status: int | None, mode: str | None, kind: str, code: str
) -> None:
    edit(project, error_runs_before_hidden=3)
    first = run(project)
    for name in NAMES[:2]:
        project.site.set_behaviour(HOST, path(name), status=status, mode=mode)
    two = [run(project).counts["deleted"] for _ in range(2)]
    # A run that ends early removes none of them; it goes on in the next one.
    early = cut_short(project, error_runs_before_hidden=3)
    held = gone(project)
    project.site.set_behaviour(HOST, path(NAMES[-1]))

    third = run(project)
    hidden = gone(project)
    counted = failures(project, NAMES[0])
    explained = explain(project, NAMES[0])
    project.site.clear_behaviours()
    back = run(project)

    assert two == [0, 0]
    assert (early.ended.exit_code, held) == (3, set())
    assert (third.ended.exit_code, hidden) == (0, set(NAMES[:2]))
    assert counted == {kind: 3}
    answer = next(step for step in explained["steps"] if step["step"] == "answer")
    assert f"failed in 3 runs in a row ({kind} 3)" in answer["detail"]
    assert code in explained["verdict"]
    assert (gone(project), back.in_index) == (set(), first.in_index)
    assert failures(project, NAMES[0]) == {}


def test_failing_pages_when_the_whole_site_is_down_then_all_wait_and_none_is_removed(project: CrawlProject) -> None:
    edit(project, error_runs_before_hidden=3)
    before = run(project)
    project.site.down()
    down = [run(project) for _ in range(3)]
    held = listed(project)
    later = run(project, **{CLOCK: str(2 * DAY)})
    project.site.change("up")

    back = run(project, **{CLOCK: str(3 * DAY)})

    assert [each.in_index for each in [*down, later]] == [before.in_index] * 4
    assert sum(each.counts["deleted"] for each in [*down, later]) == 0
    assert len(held) == len(NAMES) + 1
    assert {row["reason"] for row in held} == {"failed in 3 runs in a row"}
    assert (back.in_index, listed(project)) == (before.in_index, [])
    assert set(back.versions) == before.in_index


def test_failing_pages_when_a_copy_of_them_is_well_then_it_takes_their_place(project: CrawlProject) -> None:
    site = project.site
    # Of the two the shorter URL stands for both.
    body = page("the same words")
    site.set_page(HOST, "/a.html", body)
    site.set_page(HOST, "/longer.html", body)
    site.set_page(HOST, "/", page("start", "/a.html", "/longer.html"))
    edit(project, error_runs_before_hidden=2)
    first = run(project)
    site.set_behaviour(HOST, "/a.html", status=500)
    run(project)

    hidden = run(project)
    found = project.found("same words")
    site.clear_behaviours()
    back = run(project)

    assert first.codes[f"{HOST}/longer.html"] == 909
    assert hidden.in_index == {f"{HOST}/", f"{HOST}/longer.html"}
    assert found == [f"{HOST}/longer.html"]
    assert back.in_index == first.in_index


def test_pages_when_others_before_them_block_their_host_in_each_run_then_they_are_read_in_the_runs_after(
    project: CrawlProject,
) -> None:
    # They come first in the queue, and five failures in a row block the host for the run.
    for name in NAMES[:8]:
        project.site.set_behaviour(HOST, path(name), mode="reset")
    edit(project)

    found = [(run(project).ended.exit_code, len(project.indexed())) for _ in range(3)]

    assert found[-1] == (0, 1 + len(NAMES) - 8), found
