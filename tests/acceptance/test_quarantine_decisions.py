"""What operators decide about waiting removals: what they saw is carried out, rejected ones may go after all (L3)."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import HOST, decide, is_verified, left, listed, settings
from tests.acceptance.support_stories import page, pages, run
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

NAMES: Final = ("alpha", "beta", "gamma", "delta", "epsilon")


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    pages(clean_site, HOST, **{name: page(f"text of {name}") for name in NAMES})
    return new_project(tmp_path, clean_site, **settings(clean_site))


def delete(project: CrawlProject, *names: str) -> int:
    """Deletes pages; the number of the run that holds their removals back."""
    for name in names:
        project.site.delete_page(HOST, f"/{name}.html")
    ended = run(project).ended
    assert ended.exit_code == 9
    return int(ended.status["run"]["id"])


@pytest.mark.matrix
@pytest.mark.parametrize("action", ["approve", "reject"])
def test_decided_when_a_run_held_back_more_than_was_listed_then_what_was_listed_is_meant(
    project: CrawlProject, action: str
) -> None:
    run(project)
    first = delete(project, "alpha", "beta")
    shown = listed(project)
    second = delete(project, "gamma")

    done = decide(project, action)
    again = decide(project, action)
    waiting = listed(project)
    rest = decide(project, action)

    assert {row["run"] for row in shown} == {first}
    assert (done["documents"], done["waiting"], again["documents"], again["waiting"]) == (2, 1, 0, 1)
    assert [(row["run"], row["url"].rpartition("/")[2]) for row in waiting] == [(second, "gamma.html")]
    assert (rest["documents"], rest["waiting"]) == (1, 0)
    assert left(project) == (set(NAMES) if action == "reject" else {"delta", "epsilon"})
    assert is_verified(project)


@pytest.mark.parametrize("action", ["approve", "reject"])
def test_decided_when_nothing_was_ever_listed_then_all_that_waits_is_meant(project: CrawlProject, action: str) -> None:
    run(project)
    delete(project, "alpha")
    delete(project, "beta")

    done = decide(project, action)

    assert (done["documents"], done["waiting"]) == (2, 0)


def test_rejected_when_listed_then_with_run_reason_and_url_until_they_are_let_go(project: CrawlProject) -> None:
    run(project)
    number = delete(project, "alpha", "beta")
    before = listed(project)
    decide(project, "reject")
    run(project)

    rejected, waiting = listed(project, "--rejected"), listed(project)
    done = decide(project, "restore")

    assert rejected == before
    assert [(row["run"], row["reason"]) for row in rejected] == [(number, "404")] * 2
    assert (waiting, listed(project, "--rejected")) == ([], [])
    assert (done["documents"], done["removed"], done["failed"]) == (2, 2, 0)
    assert left(project) == {"gamma", "delta", "epsilon"}
    assert is_verified(project)
    # They were decided about: others are not held back because of them.
    assert run(project).ended.exit_code == 0


@pytest.mark.parametrize("chosen", [0, 1])
def test_restore_when_a_run_is_named_then_the_rejected_removals_of_others_stay(
    project: CrawlProject, chosen: int
) -> None:
    run(project)
    names = ("alpha", "beta")
    numbers = []
    for name in names:
        numbers.append(delete(project, name))
        decide(project, "reject")

    done = decide(project, "restore", "--run", str(numbers[chosen]))

    assert (done["documents"], done["removed"]) == (1, 1)
    assert left(project) == set(NAMES) - {names[chosen]}
    assert [row["run"] for row in listed(project, "--rejected")] == [numbers[1 - chosen]]


def test_restore_when_the_page_came_back_then_its_document_stays(project: CrawlProject) -> None:
    run(project)
    delete(project, "alpha")
    decide(project, "reject")
    project.site.set_page(HOST, "/alpha.html", page("text of alpha"))
    run(project)

    done = decide(project, "restore")

    assert (done["documents"], listed(project, "--rejected")) == (0, [])
    assert left(project) == set(NAMES)


@pytest.mark.matrix
def test_approve_when_killed_before_the_index_committed_then_the_next_call_commits(project: CrawlProject) -> None:
    run(project)
    delete(project, "alpha", "beta")

    killed = COMMANDS.run(project.folder, "quarantine", "approve", "demo", SEARCHCRAWL_FAILPOINT="delete.marked")
    again = decide(project, "approve")

    # Its removals have their receipts: nothing is left to be sent.
    assert (killed.returncode, again["documents"]) == (-signal.SIGKILL, 0)
    assert left(project) == set(NAMES[2:])
    assert is_verified(project)


@pytest.mark.parametrize(
    "words",
    [
        ("list", "demo", "--run", "1"),
        ("approve", "demo", "--rejected"),
        ("restore", "demo", "--rejected"),
        ("drop", "demo"),
        ("restore",),
    ],
)
def test_quarantine_when_used_wrongly_then_exit_2(project: CrawlProject, words: tuple[str, ...]) -> None:
    assert project.command("quarantine", *words).returncode == 2
