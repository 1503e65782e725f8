"""Links of pages that are gone, or moved for good to where no rule lets anybody go: they name nothing (D6, C6, C8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import is_verified
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "dead.acme.test"
OUTSIDE: Final = "/closed.html"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        site.set_page(HOST, "/", page("start", "/hub.html", "/other.html"))
        site.set_page(HOST, "/other.html", page("other"))
        site.set_page(HOST, "/alpha.html", page("text of alpha"))
        yield new_project(tmp_path, site, **settings(site))


def settings(site: SiteProcess, **lifecycle: int) -> dict[str, Any]:
    rules = {"exclude_urls": [f"*{OUTSIDE}"]}
    return {**source(site, HOST, scope=rules), "lifecycle": {"orphans": "delete", **lifecycle}}


def lead(site: SiteProcess, how: str, target: str = "/alpha.html") -> None:
    """Has the hub link to a page, or lead to it."""
    if how == "links":
        site.set_page(HOST, "/hub.html", page("hub", target), status=200, headers={})
    else:
        site.set_page(HOST, "/hub.html", "", status=301, headers={"Location": target})


def left(project: CrawlProject) -> set[str]:
    return {url.rpartition("/")[2].removesuffix(".html") for url in project.indexed()} - {""}


@pytest.mark.parametrize("how", ["links", "moved"])
def test_orphans_when_the_page_that_named_them_was_gone_and_fails_now_then_they_stay_away(
    project: CrawlProject, how: str
) -> None:
    lead(project.site, how)
    run(project)
    before = left(project)
    project.site.set_behaviour(HOST, "/hub.html", status=404)
    run(project)
    run(project)
    gone = left(project)
    project.site.set_behaviour(HOST, "/hub.html", status=500)
    run(project)
    run(project)
    failing = left(project)
    project.site.clear_behaviours()
    run(project)
    run(project)

    assert "alpha" in before
    assert gone == failing == {"other"}
    assert left(project) == before
    assert is_verified(project)


@pytest.mark.parametrize("how", ["links", "moved"])
def test_orphans_when_the_page_that_named_them_moved_for_good_to_an_excluded_url_then_they_leave(
    project: CrawlProject, how: str
) -> None:
    lead(project.site, how)
    run(project)
    before = left(project)
    lead(project.site, "moved", OUTSIDE)
    run(project)
    run(project)
    without = left(project)
    lead(project.site, how)
    run(project)
    run(project)

    assert "alpha" in before
    assert without == {"other"}
    assert left(project) == before
    assert is_verified(project)


def test_page_when_it_leads_to_one_that_led_to_it_before_then_that_is_no_circle(project: CrawlProject) -> None:
    lead(project.site, "moved")
    run(project)
    lead(project.site, "moved", OUTSIDE)
    run(project)
    project.site.set_page(HOST, "/", page("start", "/hub.html", "/other.html", "/alpha.html"))
    project.site.set_page(HOST, "/alpha.html", "", status=301, headers={"Location": "/hub.html"})

    after = run(project)

    assert after.codes[f"{HOST}/alpha.html"] == 954
    assert left(project) == {"other"}


def test_texts_of_links_when_the_page_that_they_lead_to_moved_elsewhere_then_they_say_nothing_of_its_old_target(
    project: CrawlProject,
) -> None:
    site = project.site
    links = '<p><a href="/hub.html">a lighthouse</a> and <a href="/alpha.html">a harbour</a></p>'
    site.set_page(HOST, "/", page("start", "/other.html", text=links))
    lead(site, "moved")
    run(project)
    before = project.found("anchor:lighthouse")
    lead(site, "moved", OUTSIDE)
    run(project)

    assert before == [f"{HOST}/alpha.html"]
    assert (project.found("anchor:lighthouse"), project.found("anchor:harbour")) == ([], [f"{HOST}/alpha.html"])


def test_explain_when_the_page_that_linked_to_a_url_moved_elsewhere_then_it_names_no_redirect_that_never_was(
    project: CrawlProject,
) -> None:
    lead(project.site, "links")
    run(project)
    lead(project.site, "moved", OUTSIDE)
    # The document of the hub waits, and its links count.
    project.edit(**settings(project.site, max_delete_documents=0))
    run(project)

    found = project.step("found", project.site.url(HOST, "/alpha.html"))

    assert found.startswith(f"on {project.site.url(HOST, '/hub.html')},")
