"""Pages are found by what others call them in their main text, whatever the order of visits (C8, G2)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import source
from tests.acceptance.test_c8_site_blocks import state
from tests.site.client import SiteProcess

HOST: Final = "anchors.acme.test"
PAGES: Final = range(12)
#: What another page calls each, by number: no word is in a title or a text of its own.
NAMES: Final = ("zero", "uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci", "undici")


def page_of(number: int, links: Mapping[str, str], *, head: str = "") -> str:
    texts = "".join(f"<p>Read of the <a href={href}>{text}</a>." for href, text in links.items())
    others = "".join(f"<a href=/{other}>menuword {other}</a>" for other in PAGES)
    return (
        f"<html lang=en><title>Kettle {number}</title>{head}<body><nav>{others}</nav><main><h1>Kettle {number}</h1>"
        f"<p>It boils the water of kind {number}, as a kettle of kind {number} does on every day.{texts}</main></html>"
    )


def write_pages(site: SiteProcess) -> None:
    """Each page names the next one, and says the title of the one after that."""
    for number in PAGES:
        after, third = (number + 1) % len(PAGES), (number + 2) % len(PAGES)
        links = {f"/{after}": NAMES[after], f"/{third}": f"Kettle {third}", f"/{number}": "itself", "/old": "oldtimer"}
        site.set_page(HOST, f"/{number}", page_of(number, links if number < 2 else dict(list(links.items())[:3])))
    site.set_behaviour(HOST, "/old", status=301, headers={"Location": "/5"})


def project_of(folder: Path, site: SiteProcess, **tables: Any) -> CrawlProject:
    return new_project(folder, site, **{**source(site, HOST, "/0"), **tables})


def named(project: CrawlProject) -> dict[str, list[str]]:
    """What is indexed of links to each page, by the last part of its URL."""
    return {path: said for path, fields in of_pages(project).items() if (said := fields.get("anchor"))}


def of_pages(project: CrawlProject) -> dict[str, dict[str, Any]]:
    return {fields["url"].rpartition("/")[2]: fields for fields in state(project).values()}


def found(project: CrawlProject, words: str) -> list[str]:
    return [url.rpartition("/")[2] for url in project.found(words)]


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    write_pages(site)
    return site


@pytest.fixture(scope="module")
def expected(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    project = project_of(tmp_path_factory.mktemp("expected"), site)
    assert project.crawl().exit_code == 0
    wanted = {str(number): [NAMES[number]] for number in PAGES}
    assert named(project) == {**wanted, "5": ["cinque", "oldtimer"]}
    return state(project)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(20))
def test_c8_anchors_when_pages_come_in_another_order_then_the_index_is_the_same(
    site: SiteProcess, expected: dict[str, dict[str, Any]], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for number in PAGES:
        site.set_behaviour(HOST, f"/{number}", delay_seconds=round(chance.random() * 0.3, 2))
    # Some go out before the pages that name them were seen.
    project = project_of(tmp_path, site, fetch={"concurrency": 8, "host_concurrency": chance.randint(1, 8)})
    first = project.crawl("-a", f"limit={chance.randint(1, len(PAGES) - 1)}")
    ended = project.crawl()
    for number in PAGES:
        site.set_behaviour(HOST, f"/{number}")

    assert (first.exit_code, ended.exit_code) == (3, 0)
    assert state(project) == expected
    # By a name that none of its own words are, beside the page that has it; not by the menu.
    assert sorted(found(project, "quattro")) == ["3", "4"]
    assert sorted(found(project, "day of kettle quattro")) == ["3", "4"]
    assert found(project, "menuword") == []
    again = project.crawl()
    assert again.counts["indexed"] == again.counts["changed"] == 0
    assert project.command("verify", project.name).returncode == 0


@pytest.mark.matrix
def test_c8_anchors_when_links_change_then_their_targets_alone_are_sent_again(tmp_path: Path) -> None:
    with SiteProcess() as site:
        write_pages(site)
        project = project_of(tmp_path, site, lifecycle={"max_delete_percent": 100})
        project.crawl()
        before = of_pages(project)
        explained = project.command("explain", site.url(HOST, "/5")).stdout
        assert 'links to it say "cinque", "oldtimer"' in explained

        # Another word for one page, and none any more for another.
        site.set_page(HOST, "/3", page_of(3, {"/4": "vier", "/5": "Kettle 5"}))
        site.set_page(HOST, "/6", page_of(6, {"/8": "Kettle 8"}))
        changed = project.crawl()
        assert (changed.counts["changed"], changed.counts["indexed"]) == (2, 4)
        assert sorted(found(project, "vier")) == ["3", "4"]
        assert found(project, "quattro") == found(project, "sette") == []
        assert of_pages(project)["4"]["checksum"] == before["4"]["checksum"]

        # A redirect leads elsewhere.
        site.set_behaviour(HOST, "/old", status=301, headers={"Location": "/9"})
        assert project.crawl().counts["indexed"] == 2
        # Two pages have it in their own text.
        assert sorted(found(project, "oldtimer")) == ["0", "1", "9"]

        # It leads nowhere.
        site.set_behaviour(HOST, "/old", status=404)
        assert project.crawl().counts["indexed"] == 1
        assert sorted(found(project, "oldtimer")) == ["0", "1"]

        # A page that leaves says nothing any more, in the run that removes it.
        site.set_behaviour(HOST, "/3", status=410)
        assert project.crawl().counts["deleted"] == 1
        assert found(project, "vier") == []
        assert project.crawl().counts["indexed"] == 0


def test_c8_anchors_when_an_orphan_is_removed_then_what_it_said_goes_in_the_same_run(tmp_path: Path) -> None:
    with SiteProcess() as site:
        body = "<html lang=en><title>{}</title><body><p>A page of some words.{}</html>"
        site.set_page(HOST, "/0", body.format("start", "<p><a href=/1>uno</a> <a href=/2>due</a>"))
        site.set_page(HOST, "/1", body.format("first", "<p>Read of <a href=/2>quattro</a>"))
        site.set_page(HOST, "/2", body.format("second", ""))
        project = project_of(tmp_path, site, lifecycle={"orphans": "delete", "max_delete_percent": 100})
        project.crawl()
        assert named(project) == {"1": ["uno"], "2": ["due", "quattro"]}

        site.set_page(HOST, "/0", body.format("start", "<p><a href=/2>due</a>"))
        assert project.crawl().counts["deleted"] == 1
        assert named(project) == {"2": ["due"]}
        assert project.crawl().counts["indexed"] == 0


def test_c8_anchors_when_a_page_is_forgotten_then_what_it_said_is_gone_at_once(tmp_path: Path) -> None:
    with SiteProcess() as site:
        write_pages(site)
        project = project_of(tmp_path, site)
        project.crawl()

        done = project.command("forget", project.site.url(HOST, "/3"), "--yes")
        assert done.returncode == 0, done.stderr
        assert found(project, "quattro") == []
        assert "3" not in named(project)

        # One that says something else since, in a run that did not complete.
        site.set_page(HOST, "/6", page_of(6, {"/8": "Kettle 8"}))
        assert project.crawl("-a", "limit=12").counts["changed"] == 1
        assert found(project, "sette") == ["7"]
        assert project.command("forget", project.site.url(HOST, "/6"), "--yes").returncode == 0
        assert found(project, "sette") == []
