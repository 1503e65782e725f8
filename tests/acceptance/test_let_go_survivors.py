"""Documents that an operator kept stand for their copies: when they are let go after all, a copy takes their place (F3, L3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import HOST, decide, is_verified, left
from tests.acceptance.support_stories import page, pages, run, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

TEXT = "one text of two pages"


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    same = page("same", text=TEXT)
    pages(clean_site, HOST, a=same, b=same, c=page("something else"))
    return new_project(tmp_path, clean_site, **source(clean_site, HOST))


def keep_the_first(project: CrawlProject) -> None:
    """Has an operator take the removal of the first page back; the run after that lets it stand for the second one again."""
    run(project)
    project.site.delete_page(HOST, "/a.html")
    run(project)
    project.ask("undelete", project.last_run())


def test_restore_when_the_page_stands_for_a_copy_then_the_copy_is_a_document_again(project: CrawlProject) -> None:
    keep_the_first(project)
    run(project)
    kept = left(project)

    decide(project, "restore")
    run(project)

    assert (kept, left(project)) == ({"a", "c"}, {"b", "c"})
    assert is_verified(project)


@pytest.mark.few(1)
@pytest.mark.parametrize("failpoint", ["delete.selected", "delete.sent", "delete.marked"])
def test_restore_when_its_process_dies_then_the_copy_is_a_document_again(project: CrawlProject, failpoint: str) -> None:
    keep_the_first(project)
    run(project)

    killed = COMMANDS.run(project.folder, "quarantine", "restore", "demo", SEARCHCRAWL_FAILPOINT=failpoint)
    run(project)

    assert (killed.returncode, left(project)) == (-9, {"b", "c"})
    assert is_verified(project)


def test_restore_when_the_page_was_not_sent_yet_then_its_copy_stays(project: CrawlProject) -> None:
    keep_the_first(project)

    decide(project, "restore")
    project.site.set_page(HOST, "/c.html", page("something new"))
    run(project)

    assert left(project) == {"b", "c"}
    assert is_verified(project)


def test_page_when_it_moved_and_the_old_one_was_kept_and_let_go_then_the_new_one_is_found(
    project: CrawlProject,
) -> None:
    limits = {"lifecycle": {"max_delete_documents": 0}}
    project.edit(**source(project.site, HOST), **limits)
    project.site.delete_page(HOST, "/b.html")
    run(project)
    project.site.delete_page(HOST, "/a.html")
    run(project)
    decide(project, "reject")
    project.site.set_page(HOST, "/b.html", page("same", text=TEXT))
    run(project)

    decide(project, "restore")
    run(project)

    assert left(project) == {"b", "c"}
    assert is_verified(project)


def test_approve_when_a_copy_waits_whose_page_was_let_go_then_it_stays(project: CrawlProject) -> None:
    project.edit(**source(project.site, HOST), lifecycle={"max_delete_documents": 0})
    run(project)
    project.site.delete_page(HOST, "/a.html")
    run(project)
    decide(project, "reject")
    run(project)
    decide(project, "restore")
    run(project)

    project.command("quarantine", "approve", "demo")
    run(project)

    assert left(project) == {"b", "c"}
    assert is_verified(project)
