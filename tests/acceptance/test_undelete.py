"""``undelete RUN`` brings back what a run removed, and the same evidence does not remove it again (L3)."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_quarantine import HOST, decide, is_verified, left, listed
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess, configure

pytestmark = pytest.mark.extended

NAMES: Final = ("alpha", "beta", "gamma", "delta")
GONE: Final = ("alpha", "beta")
NOINDEX: Final = '<meta name="robots" content="noindex">'

Change = Callable[[CrawlProject], None]


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    pages(clean_site, HOST, **{name: page(f"text of {name}") for name in NAMES})
    return new_project(tmp_path, clean_site, **source(clean_site, HOST))


def gone(project: CrawlProject) -> None:
    for name in GONE:
        project.site.delete_page(HOST, f"/{name}.html")


def noindex(project: CrawlProject) -> None:
    for name in GONE:
        project.site.set_page(HOST, f"/{name}.html", page(f"text of {name}", head=NOINDEX))


def moved_outside(project: CrawlProject) -> None:
    for name in GONE:
        headers = {"Location": "http://partner.test/"}
        project.site.set_behaviour(HOST, f"/{name}.html", status=301, headers=headers)


def outside(project: CrawlProject) -> None:
    scope = {"include_hosts": [HOST], "exclude_urls": ["*alpha*", "*beta*"]}
    project.edit(**{**source(project.site, HOST), "scope": scope})


def canonical_elsewhere(project: CrawlProject) -> None:
    head = f'<link rel="canonical" href="{project.site.url(HOST, "/gamma.html")}">'
    for name in GONE:
        project.site.set_page(HOST, f"/{name}.html", page(f"text of {name}", head=head))


@pytest.mark.matrix
@pytest.mark.few(2)
@pytest.mark.parametrize("happen", [gone, moved_outside, outside, canonical_elsewhere])
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
    found = project.found('"text of alpha"')
    later = [run(project).ended.exit_code for _ in range(2)]

    assert removed.counts["deleted"] == 2
    assert after_removal == set(NAMES) - set(GONE)
    assert done == {"source": "demo", "documents": 2, "removed": 0, "failed": 0, "to_fetch": 0}
    assert (requests, len(found), later) == ([], 1, [0, 0])
    assert left(project) == set(NAMES)
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
        for name in GONE:
            project.site.set_page(HOST, f"/{name}.html", page(f"text of {name}"))
    after = run(project)

    assert (done["documents"], done["to_fetch"]) == (0, 2)
    assert after.ended.exit_code == 0
    assert left(project) == (set(NAMES) if back else set(NAMES) - set(GONE))
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
    assert left(project) == set(NAMES)
    assert run(project).ended.exit_code == 0


def test_undelete_when_another_run_removed_more_then_only_its_own_removals_are_taken_back(
    project: CrawlProject,
) -> None:
    run(project)
    numbers = []
    for name in GONE:
        project.site.delete_page(HOST, f"/{name}.html")
        run(project)
        numbers.append(project.last_run())

    project.ask("undelete", numbers[0])

    assert left(project) == set(NAMES) - {"beta"}


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
        for name in GONE:
            project.site.set_behaviour(HOST, f"/{name}.html", status=410)
        run(project)

    assert left(project) == set(NAMES) - set(GONE)
    assert listed(project, "--rejected") == []
    assert is_verified(project)


def test_undelete_when_done_twice_then_the_second_finds_nothing(project: CrawlProject) -> None:
    run(project)
    gone(project)
    run(project)
    number = project.last_run()
    project.ask("undelete", number)

    again = project.ask("undelete", number)
    said = project.command("undelete", number)

    assert again["documents"] == 0
    assert (said.returncode, said.stdout) == (0, f"demo: nothing that run {number} removed is missing\n")


@pytest.mark.few(1)
@pytest.mark.parametrize("number", ["99", "1x", "-1", ""])
def test_undelete_when_there_is_no_such_run_then_exit_2(project: CrawlProject, number: str) -> None:
    run(project)

    wrong = project.command("undelete", number)

    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert len(wrong.stderr.splitlines()) >= 1


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
    assert left(project) == set(NAMES)
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
    for name in GONE:
        project.site.set_page(HOST, f"/{name}.html", page(f"text of {name}"))
    run(project)
    run(project)

    assert left(project) == set(NAMES)
    assert is_verified(project)
