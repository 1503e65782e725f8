"""The limits on deleting hold for all runs of a day together, however each of them ended (L3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import decide, listed
from tests.acceptance.support_stories import page, pages, run, source
from tests.crawl_forks import CLOCK
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "limits.acme.test"
NAMES: Final = tuple(f"page{number:02}" for number in range(40))
#: So many removals are never too many.
FREE: Final = 10
DAY: Final = 86_400


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        pages(site, HOST, **{name: page(f"text of {name}") for name in NAMES})
        yield new_project(tmp_path, site, **source(site, HOST))


def delete(project: CrawlProject, names: tuple[str, ...]) -> None:
    for name in names:
        project.site.delete_page(HOST, f"/{name}.html")


def test_removals_when_an_outage_meets_runs_that_end_early_then_together_they_stay_within_the_limits(
    project: CrawlProject,
) -> None:
    run(project)
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
    run(project)
    delete(project, NAMES[:6])
    run(project)
    delete(project, NAMES[6:12])

    after = run(project, **{CLOCK: str(days * DAY)})

    assert after.ended.exit_code == (0 if days else 9)
    assert len(listed(project)) == (0 if days else 6)
    assert len(project.indexed()) == len(NAMES) + 1 - (12 if days else 6)


def test_removals_when_others_wait_then_they_wait_too_until_somebody_decides(project: CrawlProject) -> None:
    run(project)
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
    run(project)
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
