"""A page that redirects for a while and is then as before: what it links to is found again (D6, L3, C6)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import is_verified
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "back.acme.test"
CHILDREN: Final = ("alpha", "beta", "gamma")
HUB: Final = page("hub", *(f"/{name}.html" for name in CHILDREN))


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    pages(clean_site, HOST, hub=HUB, other=page("other"))
    clean_site.set_pages(HOST, {f"/{name}.html": page(f"text of {name}") for name in CHILDREN})
    return new_project(tmp_path, clean_site, **source(clean_site, HOST), lifecycle={"orphans": "delete"})


def redirect(site: SiteProcess, status: int) -> None:
    """Has the hub lead to the other page, for good; 200: by a meta refresh."""
    head = '<meta http-equiv="refresh" content="0;url=/other.html">'
    headers = {} if status == 200 else {"Location": "/other.html"}
    site.set_page(HOST, "/hub.html", page("moved", head=head), status=status, headers=headers)


def put_back(site: SiteProcess) -> None:
    site.set_page(HOST, "/hub.html", HUB, status=200, headers={})


@pytest.mark.few(2)
@pytest.mark.parametrize("failing", [False, True], ids=["at-once", "after-a-failure"])
@pytest.mark.parametrize("status", [200, 301, 308])
def test_links_when_their_page_redirected_for_a_run_then_they_lead_to_the_same_documents_again(
    project: CrawlProject, status: int, failing: bool
) -> None:
    run(project)
    before = project.indexed()
    redirect(project.site, status)
    without = run(project)
    put_back(project.site)
    if failing:
        project.site.set_behaviour(HOST, "/hub.html", status=503)
        run(project)
        project.site.clear_behaviours()

    run(project)
    after = project.indexed()
    project.site.set_page(HOST, "/alpha.html", page("alpha says something new"))
    run(project)

    assert {url.rpartition("/")[2] for url in without.in_index} == {"", "other.html"}
    assert after == before
    assert [url.rpartition("/")[2] for url in project.found("something new")] == ["alpha.html"]
    assert is_verified(project)


def test_links_when_the_start_page_redirected_in_a_run_cut_off_then_all_is_back_with_the_next_visit(
    project: CrawlProject,
) -> None:
    run(project)
    before = project.indexed()
    project.site.set_page(HOST, "/", "", status=301, headers={"Location": "/other.html"})
    project.command("crawl", "demo", "-a", "limit=1")
    project.site.set_page(HOST, "/", page("start", "/hub.html", "/other.html"), status=200, headers={})

    # It goes on with what the other left, and the start page was visited.
    run(project)
    ended = run(project)

    assert (project.indexed(), ended.ended.exit_code) == (before, 0)
    assert is_verified(project)


def test_page_when_it_is_back_then_it_is_read_once_and_asked_conditionally_after_that(project: CrawlProject) -> None:
    run(project)
    redirect(project.site, 301)
    run(project)
    put_back(project.site)
    run(project)

    asked = run(project).log

    assert [request["status"] for request in asked if request["path"] == "/hub.html"] == [304]
