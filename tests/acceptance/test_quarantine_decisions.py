"""What operators decide about waiting removals: what they saw is carried out, rejected ones may go after all (L3).

Documents that they kept stand for their copies; when they are let go after all, a copy takes their place (F3).
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import HOST, decide, is_verified, left, listed, settings
from tests.acceptance.support_stories import page, pages, run, source
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


TEXT = "one text of two pages"


@pytest.fixture
def copied(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    same = page("same", text=TEXT)
    pages(clean_site, HOST, a=same, b=same, c=page("something else"))
    return new_project(tmp_path, clean_site, **source(clean_site, HOST))


def keep_the_first(copied: CrawlProject) -> None:
    """Has an operator take the removal of the first page back; the run after that lets it stand for the second one again."""
    run(copied)
    copied.site.delete_page(HOST, "/a.html")
    run(copied)
    copied.ask("undelete", copied.last_run())


def test_restore_when_the_page_stands_for_a_copy_then_the_copy_is_a_document_again(copied: CrawlProject) -> None:
    keep_the_first(copied)
    run(copied)
    kept = left(copied)

    decide(copied, "restore")
    run(copied)

    assert (kept, left(copied)) == ({"a", "c"}, {"b", "c"})
    assert is_verified(copied)


@pytest.mark.few(1)
@pytest.mark.parametrize("failpoint", ["delete.selected", "delete.sent", "delete.marked"])
def test_restore_when_its_process_dies_then_the_copy_is_a_document_again(copied: CrawlProject, failpoint: str) -> None:
    keep_the_first(copied)
    run(copied)

    killed = COMMANDS.run(copied.folder, "quarantine", "restore", "demo", SEARCHCRAWL_FAILPOINT=failpoint)
    run(copied)

    assert (killed.returncode, left(copied)) == (-9, {"b", "c"})
    assert is_verified(copied)


def test_restore_when_the_page_was_not_sent_yet_then_its_copy_stays(copied: CrawlProject) -> None:
    keep_the_first(copied)

    decide(copied, "restore")
    copied.site.set_page(HOST, "/c.html", page("something new"))
    run(copied)

    assert left(copied) == {"b", "c"}
    assert is_verified(copied)


def test_page_when_it_moved_and_the_old_one_was_kept_and_let_go_then_the_new_one_is_found(
    copied: CrawlProject,
) -> None:
    limits = {"lifecycle": {"max_delete_documents": 0}}
    copied.edit(**source(copied.site, HOST), **limits)
    copied.site.delete_page(HOST, "/b.html")
    run(copied)
    copied.site.delete_page(HOST, "/a.html")
    run(copied)
    decide(copied, "reject")
    copied.site.set_page(HOST, "/b.html", page("same", text=TEXT))
    run(copied)

    decide(copied, "restore")
    run(copied)

    assert left(copied) == {"b", "c"}
    assert is_verified(copied)


def test_approve_when_a_copy_waits_whose_page_was_let_go_then_it_stays(copied: CrawlProject) -> None:
    copied.edit(**source(copied.site, HOST), lifecycle={"max_delete_documents": 0})
    run(copied)
    copied.site.delete_page(HOST, "/a.html")
    run(copied)
    decide(copied, "reject")
    run(copied)
    decide(copied, "restore")
    run(copied)

    copied.command("quarantine", "approve", "demo")
    run(copied)

    assert left(copied) == {"b", "c"}
    assert is_verified(copied)
