"""Every page is visited and what is gone leaves, also where the machine's clock jumps between runs (D4, X-S7)."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import is_verified
from tests.acceptance.support_stories import Run, page, pages, run, source
from tests.crawl_forks import CLOCK, COMMANDS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "clock.acme.test"
NAMES: Final = ("one", "two", "three")
ALL: Final = sorted([f"{HOST}/", *(f"{HOST}/{name}.html" for name in NAMES)])
DAY: Final = 86_400


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"page {name}") for name in NAMES})
        yield new_project(tmp_path, site, **source(site, HOST))


def run_at(project: CrawlProject, seconds: int, *options: str, **variables: str) -> Run:
    return run(project, *options, **{CLOCK: str(seconds)}, **variables)


@pytest.mark.matrix
@pytest.mark.few(1)
@pytest.mark.parametrize("clocks", [(0, -DAY, -DAY, 0), (DAY, 0, 0), (DAY, -DAY, DAY), (0, 400 * DAY, 0)])
def test_pages_when_the_clock_jumps_between_runs_then_each_run_visits_them_and_a_page_that_is_gone_leaves(
    project: CrawlProject, clocks: tuple[int, ...]
) -> None:
    runs = []
    for number, seconds in enumerate(clocks):
        project.site.set_page(HOST, "/one.html", page(f"edition{number}"))
        runs.append(run_at(project, seconds))
        assert project.found(f"edition{number}") == [f"{HOST}/one.html"]
    project.site.delete_page(HOST, "/two.html")
    after = run_at(project, clocks[-1])

    assert [sorted(each.requested) for each in runs] == [ALL] * len(clocks)
    assert [(each.ended.exit_code, each.in_index) for each in runs] == [(0, {*ALL})] * len(clocks)
    assert project.indexed() == sorted({*ALL} - {f"{HOST}/two.html"})
    assert after.codes[f"{HOST}/two.html"] == 404
    assert is_verified(project)


@pytest.mark.few(1)
@pytest.mark.parametrize("ending", ["limit", "kill"])
@pytest.mark.parametrize("back", [0, DAY])
def test_pages_when_the_source_is_edited_after_a_run_that_did_not_end_and_the_clock_set_back_then_all_are_visited(
    project: CrawlProject, ending: str, back: int
) -> None:
    run_at(project, 0)
    if ending == "limit":
        run_at(project, 0, "-a", "limit=2")
    else:
        killed = COMMANDS.run(project.folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT="shutdown.begin")
        assert killed.returncode == -signal.SIGKILL
    project.edit(**source(project.site, HOST), keep={"min_bytes": 1})

    after = run_at(project, -back)

    assert sorted(after.requested) == ALL
    assert after.ended.exit_code == 0


@pytest.mark.few(2)
@pytest.mark.parametrize("ahead", [1800, DAY, 30 * DAY, 4000 * DAY])
def test_pages_when_the_clock_was_ahead_once_then_they_are_visited_once_more_and_wait_for_their_time_again(
    project: CrawlProject, ahead: int
) -> None:
    project.edit(**source(project.site, HOST) | {"lifecycle": {"recrawl_every_hours": 24}})
    run_at(project, ahead)

    again = run_at(project, 0)
    at = time.time()
    due = [datetime.fromisoformat(row["next_due"]).timestamp() - at for row in project.lines("urls", "demo")]
    third = run_at(project, 0)

    assert sorted(again.requested) == ALL
    assert max(due) < DAY
    assert third.requested == []


def test_pages_when_one_failed_while_the_clock_was_ahead_then_the_next_run_tries_it_again(
    project: CrawlProject,
) -> None:
    project.site.set_behaviour(HOST, "/two.html", status=500)
    run_at(project, 0, "-a", "limit=1")
    run_at(project, 30 * DAY)
    run_at(project, 0)
    project.site.clear_behaviours()

    after = run_at(project, 0)

    assert sorted(after.requested) == ALL
    assert after.codes[f"{HOST}/two.html"] == 200


@pytest.mark.few(1)
@pytest.mark.parametrize("ahead", [DAY, 1800])
def test_pages_when_the_clock_was_ahead_once_and_hosts_have_a_delay_then_no_host_waits_for_that_moment(
    project: CrawlProject, ahead: int
) -> None:
    project.edit(**source(project.site, HOST, delay_seconds=0.1))
    run_at(project, ahead)

    after = run_at(project, 0)

    assert sorted(after.requested) == ALL
    assert after.ended.exit_code == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("jumps", [f"0,2:{-DAY},4:0", f"0,2:{DAY},4:0", f"0,2:{DAY},3:{-DAY},4:{2 * DAY},5:0"])
def test_pages_when_the_clock_is_set_during_a_run_with_a_delay_then_it_goes_on_and_visits_them(
    project: CrawlProject, jumps: str
) -> None:
    names = [f"more{number}" for number in range(25)]
    pages(project.site, HOST, **{name: page(f"page {name}") for name in (*NAMES, *names)})
    project.edit(**source(project.site, HOST, delay_seconds=0.2))

    found = run(project, "-s", "SEARCHCRAWL_STALL_SECONDS=4", **{CLOCK: jumps})

    assert sorted(found.requested) == sorted([*ALL, *(f"{HOST}/{name}.html" for name in names)])
    assert found.ended.exit_code == 0
