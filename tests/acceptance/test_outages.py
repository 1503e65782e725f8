"""A site that is away loses no document; pages that are gone leave within the limits (D4, D5, L3, L4)."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import Run, Story, Tell, run, source

pytestmark = pytest.mark.extended

PAGES = 100
HOST = "gen.acme.test"
FOLDER = f"/n/{PAGES}/"


def _prepare(project: CrawlProject, **fetch: object) -> Run:
    project.edit(**source(project.site, HOST, FOLDER, **fetch))
    return run(project)


def _down(project: CrawlProject) -> list[Run]:
    runs = [_prepare(project, retries=3)]
    project.site.down()
    runs += [run(project) for _ in range(3)]
    project.site.up()
    return [*runs, run(project)]


def _robots_500(project: CrawlProject) -> list[Run]:
    runs = [_prepare(project)]
    project.site.set_behaviour(path="/robots.txt", status=500)
    runs.append(run(project))
    project.site.clear_behaviours()
    return [*runs, run(project)]


def _pages_503(project: CrawlProject) -> list[Run]:
    runs = [_prepare(project, retries=1)]
    project.site.set_behaviour(status=503)
    runs.append(run(project))
    project.site.clear_behaviours()
    return [*runs, run(project)]


def _faults(project: CrawlProject) -> list[Run]:
    runs = [_prepare(project)]
    for fault in ({"mode": "cut"}, {"mode": "reset"}, {"status": 200, "body": " "}, {"status": 401}):
        project.site.clear_behaviours()
        project.site.set_behaviour(prefix="/n/", **fault)
        runs.append(run(project))
    project.site.clear_behaviours()
    return [*runs, run(project)]


def _sixty_gone(project: CrawlProject) -> list[Run]:
    runs = [_prepare(project)]
    for number in range(40, 100):
        project.site.delete_page(HOST, f"{FOLDER}{number}.html")
    runs += [run(project), run(project)]
    waiting = [json.loads(line) for line in project.command("quarantine", "list", "demo", "--json").stdout.splitlines()]
    assert {row["run"] for row in waiting} == {2}
    assert len({row["url"] for row in waiting}) == 60
    unknown = project.command("quarantine", "approve", "demo", "--run", "999")
    approved = project.command("quarantine", "approve", "demo", "--json")
    assert (unknown.returncode, unknown.stderr.strip()) == (2, "searchcrawl: unknown run: 999")
    assert (approved.returncode, json.loads(approved.stdout)["removed"]) == (0, 60)
    return [*runs, run(project)]


def _sixty_back(project: CrawlProject) -> list[Run]:
    runs = [_prepare(project)]
    project.site.set_behaviour(host=HOST, prefix=FOLDER + "9", status=404)
    project.site.set_behaviour(host=HOST, prefix=FOLDER + "8", status=410)
    runs.append(run(project))
    project.site.clear_behaviours()
    return [*runs, run(project)]


def _eight_gone(project: CrawlProject) -> list[Run]:
    runs = [_prepare(project)]
    for number in range(92, 100):
        project.site.delete_page(HOST, f"{FOLDER}{number}.html")
    return [*runs, run(project)]


STORIES: dict[str, Story] = {
    "down": _down,
    "robots_500": _robots_500,
    "pages_503": _pages_503,
    "faults": _faults,
    "sixty_gone": _sixty_gone,
    "sixty_back": _sixty_back,
    "eight_gone": _eight_gone,
}
AWAY = ["down", "robots_500", "pages_503", "faults"]


@pytest.mark.parametrize("story", AWAY)
def test_documents_when_the_site_was_away_then_all_are_there_as_before(tell: Tell, story: str) -> None:
    first, *later = tell(story)

    assert len(first.versions) == PAGES
    assert [one.versions == first.versions for one in later] == [True] * len(later)
    assert [len(one.in_index) for one in later] == [PAGES] * len(later)
    assert [one.counts["deleted"] for one in later] == [0] * len(later)
    # The last run, when the site is back, is clean and sends nothing.
    last = later[-1]
    assert (last.ended.exit_code, last.ended.errors) == (0, "")
    assert set(last.codes.values()) == {200}
    assert (last.counts["fetched"], last.counts["indexed"], last.counts["fetch_failures"]) == (PAGES, 0, 0)
    assert last.counts["not_modified"] == PAGES
    assert last.codes == first.codes


@pytest.mark.parametrize(
    ("story", "codes"),
    [("down", [906, 906, 906]), ("robots_500", [951]), ("pages_503", [503]), ("faults", [958, 905, 911, 401])],
)
def test_runs_when_the_site_is_away_then_each_row_has_the_code_of_the_cause(
    tell: Tell, story: str, codes: list[int]
) -> None:
    _, *away, _ = tell(story)

    assert [set(one.codes.values()) for one in away] == [{code} for code in codes]
    # An empty page is an answer; everything else is a start URL that failed.
    assert [one.ended.exit_code for one in away] == [0 if code == 911 else 8 for code in codes]
    assert [one.ended.status["state"] for one in away if one.ended.exit_code == 8] == ["failed"] * sum(
        code != 911 for code in codes
    )


def test_run_when_the_site_refuses_connections_or_robots_fails_then_the_host_is_left_alone(tell: Tell) -> None:
    _, *down, _ = tell("down")
    _, failing, _ = tell("robots_500")

    # A hundred pages with three retries each would take minutes.
    assert max(one.ended.seconds for one in down) < 60
    assert failing.requested == []


def test_removals_when_sixty_of_a_hundred_are_gone_then_all_wait_until_approved(tell: Tell) -> None:
    first, gone, again, approved = tell("sixty_gone")

    assert (gone.ended.exit_code, gone.ended.status["quarantined"], gone.counts["deleted"]) == (9, 60, 0)
    assert gone.versions == again.versions == first.versions
    assert gone.ended.status["documents"] == PAGES
    assert (again.ended.exit_code, again.ended.status["quarantined"]) == (9, 60)
    assert approved.ended.exit_code == 0
    assert approved.versions.keys() == {url for url, code in again.codes.items() if code == 200}
    assert len(approved.versions) == PAGES - 60


def test_removals_in_quarantine_when_the_pages_are_back_then_nothing_waits_any_more(tell: Tell) -> None:
    first, gone, back = tell("sixty_back")

    assert (gone.ended.exit_code, gone.ended.status["quarantined"]) == (9, 22)
    assert (back.ended.exit_code, back.ended.status["quarantined"]) == (0, 0)
    assert back.versions == first.versions


def test_removals_when_eight_of_a_hundred_are_gone_then_they_leave_at_once(tell: Tell) -> None:
    first, second = tell("eight_gone")

    assert (second.ended.exit_code, second.counts["deleted"], second.ended.status["quarantined"]) == (0, 8, 0)
    assert first.versions.keys() - second.versions.keys() == {
        f"{HOST}{FOLDER}{number}.html" for number in range(92, 100)
    }
    assert second.ended.status["documents"] == PAGES - 8
