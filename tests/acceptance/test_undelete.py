"""``undelete RUN`` brings back what a run removed, and the same evidence does not remove it again (L3)."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_quarantine import (
    HOST,
    NAMES,
    canonical_elsewhere,
    decide,
    gone,
    is_verified,
    left,
    listed,
    moved_outside,
    noindex,
    status_410,
    write,
)
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess, configure

pytestmark = pytest.mark.extended

ALL: Final = ("alpha", "beta", "gamma", "delta")

Change = Callable[[CrawlProject], None]


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    pages(clean_site, HOST, **{name: page(f"text of {name}") for name in ALL})
    return new_project(tmp_path, clean_site, **source(clean_site, HOST))


def outside(project: CrawlProject) -> None:
    scope = {"include_hosts": [HOST], "exclude_urls": ["*alpha*", "*beta*"]}
    project.edit(**{**source(project.site, HOST), "scope": scope})


def named_elsewhere(project: CrawlProject) -> None:
    canonical_elsewhere(project, "text of")


@pytest.mark.matrix
@pytest.mark.few(2)
@pytest.mark.parametrize("happen", [gone, moved_outside, outside, named_elsewhere])
def test_undelete_when_the_cache_has_the_documents_then_they_are_found_at_once_and_stay(
    project: CrawlProject, happen: Change
) -> None:
    run(project)
    happen(project)
    removed = run(project)
    number = project.last_run()
    after_removal = left(project)
    project.site.clear_log()

    done = project.ask("undelete", number)
    requests = project.site.log()
    again = project.command("undelete", number)
    found = project.found('"text of alpha"')
    later = [run(project).ended.exit_code for _ in range(2)]

    assert removed.counts["deleted"] == 2
    assert after_removal == set(ALL) - set(NAMES)
    assert done == {"source": "demo", "documents": 2, "removed": 0, "failed": 0, "to_fetch": 0}
    assert (requests, len(found), later) == ([], 1, [0, 0])
    assert (again.returncode, again.stdout) == (0, f"demo: nothing that run {number} removed is missing\n")
    assert left(project) == set(ALL)
    assert len(listed(project, "--rejected")) == 2
    assert is_verified(project)


@pytest.mark.few(2)
@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("happen", [gone, noindex])
def test_undelete_when_the_cache_has_lost_them_then_they_are_fetched(
    project: CrawlProject, happen: Change, *, back: bool
) -> None:
    configure(project.folder, cache={"preserve": False})
    run(project)
    happen(project)
    run(project)

    done = project.ask("undelete", project.last_run())
    if back:
        write(project, "text of")
    after = run(project)

    assert (done["documents"], done["to_fetch"]) == (0, 2)
    assert after.ended.exit_code == 0
    assert left(project) == (set(ALL) if back else set(ALL) - set(NAMES))
    assert is_verified(project)


def test_undelete_when_removals_were_approved_then_the_run_that_held_them_back_is_meant(project: CrawlProject) -> None:
    strict = {**source(project.site, HOST), "lifecycle": {"max_delete_documents": 0}}
    run(project)
    project.edit(**strict)
    gone(project)
    assert run(project).ended.exit_code == 9
    number = project.last_run()
    run(project)
    decide(project, "approve")
    nothing = project.ask("undelete", project.last_run())

    done = project.ask("undelete", number)

    assert (nothing["documents"], done["documents"]) == (0, 2)
    assert left(project) == set(ALL)
    assert run(project).ended.exit_code == 0


def test_undelete_when_another_run_removed_more_then_only_its_own_removals_are_taken_back(
    project: CrawlProject,
) -> None:
    run(project)
    numbers = []
    for name in NAMES:
        project.site.delete_page(HOST, f"/{name}.html")
        run(project)
        numbers.append(project.last_run())

    project.ask("undelete", numbers[0])

    assert left(project) == set(ALL) - {"beta"}


@pytest.mark.parametrize("action", ["restore", "other evidence"])
def test_undelete_when_they_are_let_go_after_all_then_they_leave_again(project: CrawlProject, action: str) -> None:
    run(project)
    gone(project)
    run(project)
    number = project.last_run()
    project.ask("undelete", number)

    if action == "restore":
        decide(project, "restore", "--run", number)
    else:
        status_410(project)
        run(project)

    assert left(project) == set(ALL) - set(NAMES)
    assert listed(project, "--rejected") == []
    assert is_verified(project)


def test_undelete_when_there_is_no_such_run_then_exit_2(project: CrawlProject) -> None:
    run(project)

    for number in ("99", "1x", "-1", ""):
        wrong = project.command("undelete", number)

        assert (wrong.returncode, wrong.stdout, bool(wrong.stderr)) == (2, "", True), number


def test_undelete_when_the_index_is_away_then_exit_6_and_the_next_run_sends_them(project: CrawlProject) -> None:
    run(project)
    gone(project)
    run(project)
    number = project.last_run()
    configure(project.folder, index=absent_index())

    away = [project.command("undelete", number).returncode for _ in range(2)]
    configure(project.folder)
    after = run(project)

    assert (away, after.ended.exit_code) == ([6, 6], 0)
    assert left(project) == set(ALL)
    assert is_verified(project)


@pytest.mark.few(1)
@pytest.mark.parametrize("point", ["delete.selected", "delete.sent", "delete.marked"])
@pytest.mark.parametrize("cached", [True, False])
def test_undelete_when_the_run_was_killed_while_it_removed_then_they_come_back_too(
    project: CrawlProject, point: str, *, cached: bool
) -> None:
    run(project)
    gone(project)
    assert project.crawl(SEARCHCRAWL_FAILPOINT=point).exit_code == -signal.SIGKILL
    number = project.last_run()
    if not cached:
        shutil.rmtree(project.folder / "var" / "cache" / "demo")

    project.command("undelete", number)
    write(project, "text of")
    run(project)
    run(project)

    assert left(project) == set(ALL)
    assert is_verified(project)
