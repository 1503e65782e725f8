"""Pages that share a title are told by their headings, whatever the order of visits, and whenever a process dies (C8)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import source
from tests.acceptance.test_c8_site_blocks import state
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess

HOST: Final = "titles.acme.test"
PAGES: Final = range(7)


def write_pages(site: SiteProcess, *, sharing: int = 6) -> None:
    """The first page has a title of its own, the last one none."""
    for number in PAGES:
        title = "Kettles" if number == 0 else "Member List" if number < sharing else f"Lid {number}"
        others = "".join(f"<a href=/{other}>{other}</a> " for other in PAGES)
        head = f"<title>{title}</title>" if number < PAGES[-1] else ""
        body = f"<main><h1>Kettle {number} Member List</h1><p>It boils the water of kind {number}.</main><nav>{others}</nav>"
        site.set_page(HOST, f"/{number}", f"<html lang=en>{head}<body>{body}</html>")


def project_of(folder: Path, site: SiteProcess) -> CrawlProject:
    return new_project(folder, site, **source(site, HOST, "/0"))


def titles(project: CrawlProject) -> list[str]:
    found = {fields["url"]: fields["title"] for fields in state(project).values()}
    return [found[url] for url in sorted(found)]


EXPECTED: Final = ["Kettles", *(f"Member List · Kettle {number}" for number in PAGES[1:-1]), "Kettle 6 Member List"]


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    write_pages(site)
    return site


def test_c8_titles_when_pages_share_one_then_each_is_told_by_its_heading(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(tmp_path, site)

    project.crawl()
    again = project.crawl()

    assert titles(project) == EXPECTED
    # Records and digests know nothing of it.
    assert again.counts["indexed"] == again.counts["changed"] == 0
    assert project.command("verify", project.name).returncode == 0
    assert len(project.found('title:"member list"')) == len(PAGES) - 1
    assert project.ask("test", site.url(HOST, "/3"), "--source", project.name)["fields"]["title"] == EXPECTED[3]
    said = [project.command("explain", project.site.url(HOST, f"/{number}")).stdout for number in (0, 3, 6)]
    assert "shown as" not in said[0]
    assert f'title "Member List", shown as "{EXPECTED[3]}", because other pages share its title' in said[1]
    assert f'shown as "{EXPECTED[6]}", because it has no title' in said[2]


@pytest.mark.extended
def test_c8_titles_when_fewer_pages_share_one_then_they_have_their_own_again(tmp_path: Path) -> None:
    with SiteProcess() as site:
        write_pages(site, sharing=4)
        project = project_of(tmp_path, site)
        project.crawl()
        assert titles(project)[1] == "Member List"

        write_pages(site)
        project.crawl()
        assert titles(project) == EXPECTED

        write_pages(site, sharing=3)
        project.crawl()
        assert titles(project)[:3] == ["Kettles", "Member List", "Member List"]
        assert project.crawl().counts["indexed"] == 0


@pytest.mark.extended
@pytest.mark.few(1)
@pytest.mark.parametrize("failpoint", ["titles.frozen", "titles.marked", "anchors.frozen", "batch.sealed"])
def test_c8_titles_when_a_process_dies_while_they_are_frozen_then_the_next_one_ends_it(
    tmp_path: Path, failpoint: str
) -> None:
    with SiteProcess() as site:
        write_pages(site)
        project = project_of(tmp_path, site)
        # These are in the index with what they say.
        project.crawl("-a", "limit=6")
        assert "Member List" in titles(project)
        killed = [
            COMMANDS.run(project.folder, "crawl", project.name, SEARCHCRAWL_FAILPOINT=each)
            for each in (failpoint, f"{failpoint}:2")
        ]
        ended = project.crawl()

        assert killed[0].returncode in {-9, 0}
        assert failpoint == "anchors.frozen" or killed[0].returncode == -9
        assert ended.exit_code == 0
        assert titles(project) == EXPECTED
        assert project.command("verify", project.name).returncode == 0


@pytest.mark.extended
def test_c8_titles_when_a_host_is_left_then_nothing_is_known_of_it(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(tmp_path, site)
    project.crawl()
    project.edit(**source(site, HOST, "/0", scope={"exclude_urls": ["*/4", "*/5", "*/6"]}))
    project.crawl()

    # Three still share it.
    assert titles(project) == EXPECTED[:4]
