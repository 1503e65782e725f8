"""The limits on deleting hold for all runs of a day together, and for documents that become copies; of a first crawl these leave at once (L3, F2)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import decide, is_verified, listed
from tests.acceptance.support_stories import page, pages, run, source
from tests.crawl_forks import CLOCK, COMMANDS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "limits.acme.test"
OTHER: Final = "others.acme.test"
NAMES: Final = tuple(f"page{number:02}" for number in range(40))
#: So many removals are never too many.
FREE: Final = 10
DAY: Final = 86_400


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        yield site


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    """A project whose site has been crawled once."""
    heal(site)
    project = new_project(tmp_path, site, **source(site, HOST))
    run(project)
    return project


def heal(site: SiteProcess) -> None:
    pages(site, HOST, **{name: page(f"text of {name}") for name in NAMES})


def delete(project: CrawlProject, names: tuple[str, ...]) -> None:
    for name in names:
        project.site.delete_page(HOST, f"/{name}.html")


def test_removals_when_an_outage_meets_runs_that_end_early_then_together_they_stay_within_the_limits(
    project: CrawlProject,
) -> None:
    delete(project, NAMES)
    # About six visits a run.
    project.edit(**source(project.site, HOST, concurrency=1, delay_seconds=0.2, max_minutes=0.02))

    # On a busy machine fewer.
    ended = [run(project).ended]
    while not listed(project) and len(ended) < len(NAMES):
        ended.append(run(project).ended)

    left = len(project.indexed())
    assert left >= len(NAMES) + 1 - FREE
    assert listed(project)
    assert {each.status["run"]["end_reason"] for each in ended[:2]} == {"max_minutes"}
    assert sum(each.counts["deleted"] for each in ended) == len(NAMES) + 1 - left


@pytest.mark.parametrize("days", [0, 2])
def test_removals_when_completed_runs_follow_each_other_then_those_of_a_day_count_together(
    project: CrawlProject, days: int
) -> None:
    delete(project, NAMES[:6])
    run(project)
    delete(project, NAMES[6:12])

    after = run(project, **{CLOCK: str(days * DAY)})

    assert after.ended.exit_code == (0 if days else 9)
    assert len(listed(project)) == (0 if days else 6)
    assert len(project.indexed()) == len(NAMES) + 1 - (12 if days else 6)


def test_removals_when_others_wait_then_they_wait_too_until_somebody_decides(project: CrawlProject) -> None:
    delete(project, NAMES[:12])
    first = run(project)
    delete(project, NAMES[12:14])
    second = run(project)

    held = len(listed(project))
    approved = project.command("quarantine", "approve", "demo").returncode
    delete(project, NAMES[14:16])
    third = run(project)

    assert [first.ended.exit_code, second.ended.exit_code, third.ended.exit_code] == [9, 9, 0]
    assert (held, approved) == (14, 0)
    assert len(project.indexed()) == len(NAMES) + 1 - 16


@pytest.mark.parametrize("action", ["approve", "reject"])
def test_quarantine_when_one_run_is_named_then_what_another_run_held_back_goes_on_waiting(
    project: CrawlProject, action: str
) -> None:
    delete(project, NAMES[:12])
    run(project)
    held = listed(project)
    delete(project, NAMES[12:14])
    run(project)

    number = str(held[0]["run"])
    done = decide(project, action, "--run", number)
    wrong = project.command("quarantine", "list", "demo", "--run", number)

    assert {row["run"] for row in held} == {int(number)}
    assert done["documents"] == 12
    assert {row["url"].rpartition("/")[2] for row in listed(project)} == {f"{name}.html" for name in NAMES[12:14]}
    assert len(project.indexed()) == len(NAMES) + 1 - (12 if action == "approve" else 0)
    assert wrong.returncode == 2


def name_another(site: SiteProcess, target: str) -> None:
    """An error in the template: each page says that another one is meant."""
    for name in NAMES:
        site.set_page(HOST, f"/{name}.html", page(f"text of {name}", head=f'<link rel="canonical" href="{target}">'))


def copy(site: SiteProcess, *names: str, of: str = NAMES[39]) -> None:
    for name in names:
        site.set_page(HOST, f"/{name}.html", page(f"text of {of}"))


def are_found(project: CrawlProject) -> bool:
    """Whether all pages are in the index once, three of them looked for by their text."""
    there = len(project.indexed()) == len(NAMES) + 1
    return there and all(len(project.found(f'"text of {name}"')) == 1 for name in NAMES[:3])


@pytest.mark.few(1)
@pytest.mark.parametrize("decision", ["approve", "reject", None])
@pytest.mark.parametrize(("target", "named"), [("/", 40), ("/page00.html", 39)])
def test_copies_when_a_template_names_one_page_for_all_then_they_wait_and_are_found_until_somebody_decides(
    project: CrawlProject, target: str, named: int, decision: str | None
) -> None:
    name_another(project.site, target)
    held = run(project)
    found, rows = are_found(project), listed(project)
    again = run(project)
    if decision is not None:
        assert decide(project, decision)["documents"] == named
    kept = run(project)
    left = len(project.indexed())
    heal(project.site)
    healthy = run(project)

    assert found
    assert [each.ended.exit_code for each in (held, again)] == [9, 9]
    assert {row["reason"] for row in rows} == {"964"}
    assert len(rows) == named
    assert (held.counts["duplicates"], held.counts["deleted"]) == (named, 0)
    assert kept.ended.exit_code == (9 if decision is None else 0)
    assert left == len(NAMES) + 1 - (named if decision == "approve" else 0)
    assert (healthy.ended.exit_code, listed(project)) == (0, [])
    assert set(healthy.codes.values()) == {200}
    assert are_found(project)
    assert is_verified(project)


def test_copies_when_every_page_becomes_one_and_the_same_then_all_are_found_in_their_text(
    project: CrawlProject,
) -> None:
    for name in ("", *(f"{name}.html" for name in NAMES)):
        project.site.set_page(HOST, f"/{name}", page("we are back soon"))
    held = run(project)
    found = are_found(project)
    heal(project.site)
    healthy = run(project)

    assert (held.counts["deleted"], found) == (0, True)
    assert (healthy.ended.exit_code, are_found(project)) == (0, True)
    assert is_verified(project)


def test_copies_when_an_edit_shows_many_pages_under_the_urls_of_others_then_they_wait(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages(site, HOST, **{name: page(f"{name} here") for name in NAMES})
    pages(site, OTHER, **{name: page(f"{name} there") for name in NAMES})
    site.set_page(OTHER, "/", page("another start", *(f"/{name}.html" for name in NAMES)))
    project = new_project(tmp_path, site, **source(site, [HOST, OTHER]))
    run(project)
    mapping = [{"from": site.url(OTHER, ""), "to": site.url(HOST, "")}]
    project.edit(**source(site, [HOST, OTHER]), display=mapping)

    held = run(project)
    number, rows = len(project.indexed()), listed(project)
    approved = project.command("quarantine", "approve", "demo").returncode

    assert (held.ended.exit_code, approved) == (9, 0)
    assert number == 2 * (len(NAMES) + 1)
    assert [row["reason"] for row in rows] == ["956"] * (len(NAMES) + 1)
    assert len(project.indexed()) == len(NAMES) + 1
    assert is_verified(project)


def test_copies_when_they_are_few_then_they_leave_by_themselves_and_are_counted(project: CrawlProject) -> None:
    copy(project.site, *NAMES[:8])
    first = run(project)
    there = len(project.indexed())
    copy(project.site, *NAMES[8:16])
    second = run(project)
    rows = listed(project)
    later = run(project, **{CLOCK: str(2 * DAY)})

    assert (first.ended.exit_code, first.counts["deleted"], there) == (0, 8, len(NAMES) + 1 - 8)
    # Eight and eight of a day are too many, and what waits goes on counting.
    assert (second.ended.exit_code, later.ended.exit_code, second.counts["deleted"]) == (9, 9, 0)
    assert [row["reason"] for row in rows] == ["909"] * 8
    assert len(project.indexed()) == there


def test_copies_when_the_survivor_changes_then_those_that_wait_are_documents_of_their_own_again(
    project: CrawlProject,
) -> None:
    name_another(project.site, "/page00.html")
    run(project)
    held = len(listed(project))
    project.site.delete_page(HOST, "/page00.html")

    after = run(project)

    assert held == 39
    assert listed(project) == []
    assert after.ended.exit_code == 0
    assert len(project.indexed()) == len(NAMES)
    assert is_verified(project)


@pytest.mark.few(1)
@pytest.mark.parametrize("many", [True, False])
def test_copies_when_the_process_is_killed_over_it_then_the_next_one_decides_the_same(
    project: CrawlProject, many: bool
) -> None:
    copy(project.site, *NAMES[: 12 if many else 8])
    killed = COMMANDS.run(project.folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT="delete.selected")

    after = run(project)

    assert killed.returncode == -signal.SIGKILL
    assert after.ended.exit_code == (9 if many else 0)
    assert after.counts["deleted"] == (0 if many else 8)
    assert len(listed(project)) == (12 if many else 0)
    assert len(project.indexed()) == len(NAMES) + 1 - (0 if many else 8)


def test_removals_when_a_command_sends_what_a_run_left_then_they_count_too(project: CrawlProject) -> None:
    delete(project, NAMES[:6])
    failed = COMMANDS.run(project.folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT="delete.selected:raise")
    flushed = project.ask("flush", "demo")
    delete(project, NAMES[6:12])

    # The first one only ends what the failed one began.
    after = [run(project).ended.exit_code for _ in range(2)]

    assert failed.returncode == 7
    assert flushed["removed"] == 6
    assert after == [0, 9]
    assert len(listed(project)) == 6
    assert len(project.indexed()) == len(NAMES) + 1 - 6


def first_crawl(site: SiteProcess, folder: Path) -> CrawlProject:
    """A project whose first crawl sends each page before the one comes that all of them name."""
    pages(site, HOST)
    name_another(site, "/best.html")
    site.set_page(HOST, "/best.html", page("the best"))
    site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in NAMES[:20])))
    settings = source(site, HOST, concurrency=1, host_concurrency=1, delay_seconds=0.1)
    return new_project(folder, site, **settings, project={"cache": {"threshold_mb": 0.0005}})


@pytest.mark.parametrize("options", [(), ("-a", "limit=6")], ids=["one run", "runs with a limit"])
def test_copies_when_a_first_crawl_sends_them_before_the_better_one_then_they_leave_at_once(
    site: SiteProcess, tmp_path: Path, options: tuple[str, ...]
) -> None:
    project = first_crawl(site, tmp_path)

    ended = [run(project, *options)]
    while ended[-1].ended.status["run"]["end_reason"] == "limit":
        ended.append(run(project, *options))

    # Many were sent that are not in the index any more.
    assert sum(each.counts["indexed"] for each in ended) > FREE
    assert sum(each.counts["deleted"] for each in ended) == 0
    assert [each.ended.status["quarantined"] for each in ended] == [0] * len(ended)
    assert ended[-1].ended.exit_code == 0
    assert ended[-1].versions.keys() == {f"{HOST}/", f"{HOST}/best.html"}


def test_copies_when_a_first_crawl_is_killed_again_and_again_then_they_leave_at_once(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = first_crawl(site, tmp_path)
    for point in ("batch.marked:2", "index.acked", "delete.selected", "delete.marked"):
        killed = COMMANDS.run(project.folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT=point)
        assert killed.returncode == -signal.SIGKILL

    ended = run(project)

    assert (ended.ended.exit_code, ended.counts["deleted"]) == (0, 0)
    assert ended.versions.keys() == {f"{HOST}/", f"{HOST}/best.html"}
