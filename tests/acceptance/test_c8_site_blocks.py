"""What stands on most pages of a host is not indexed, and most pages tell the language of the others (C8, C9).

Whatever the order of visits, and whenever a process dies.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import source
from tests.crawl_forks import COMMANDS
from tests.languages import TEXTS
from tests.site.client import SiteProcess

pytestmark = pytest.mark.extended

HOST: Final = "blocks.acme.test"
#: Of fewer pages than ten nothing is said.
FEW: Final = range(8)
MANY: Final = range(16)
#: What some pages say instead: a few words in another language, all of a page in one, a listing.
MORE: Final = {3: TEXTS["sv"][0], 7: "<p>".join(TEXTS["fr"] * 3), 11: "mov eax, ebx; jne .L3; retq; " * 9}
#: The language that some pages declare; that of the others is told.
DECLARED: Final = {0: "en", 4: "en-gb", 5: "de", 8: "en"}
LANGUAGES: Final = {number: DECLARED.get(number, "fr" if number == 7 else "en") for number in MANY}
_TIMES: Final = frozenset({"crawled_at", "crawl_version", "first_seen"})


def write_pages(site: SiteProcess, numbers: range, *, ending: str = "Call the house at any time of the day") -> None:
    """Pages with the same first and last lines, which no element or name calls a menu; a few declare their language."""
    for number in numbers:
        others = "".join(
            f"<p><a href=/{other or ''}>to {other}</a>" for other in random.Random(number).sample(numbers, 4)
        )
        links = "".join(f"<a href=/{other or ''}> </a>" for other in numbers)
        own = MORE.get(number, f"It boils the water of kind {number}.")
        body = f"<p>Welcome menuword<p>Kettle {number}<p>{own}{others}<p>{ending}{links}"
        html = f"<html lang='{DECLARED.get(number, '')}'><title>Kettle {number}</title><body>{body}</html>"
        site.set_page(HOST, f"/{number or ''}", html)


def project_of(folder: Path, site: SiteProcess, **tables: Any) -> CrawlProject:
    return new_project(folder, site, **{**source(site, HOST), **tables})


def edit(project: CrawlProject, **tables: Any) -> None:
    project.edit(**source(project.site, HOST), **tables)


def state(project: CrawlProject) -> dict[str, dict[str, Any]]:
    """The documents of the index, without what says when they were sent."""
    return {
        hit.id: {name: value for name, value in hit.fields.items() if name not in _TIMES} for hit in project.hits("*")
    }


def languages(project: CrawlProject) -> dict[int, str]:
    return {int(hit.fields["url"].rpartition("/")[2] or 0): hit.fields.get("language", "") for hit in project.hits("*")}


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    write_pages(site, MANY)
    return site


@pytest.fixture(scope="module")
def expected(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    project = project_of(tmp_path_factory.mktemp("expected"), site)
    assert project.crawl().exit_code == 0
    assert languages(project) == LANGUAGES
    return state(project)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(20))
def test_c8_index_when_pages_come_in_another_order_then_is_the_same(
    site: SiteProcess, expected: dict[str, dict[str, Any]], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for number in MANY:
        site.set_behaviour(HOST, f"/{number or ''}", delay_seconds=round(chance.random() * 0.4, 2))
    # Some go out before others were seen.
    project = project_of(tmp_path, site, fetch={"concurrency": 8, "host_concurrency": chance.randint(1, 8)})
    limit = chance.randint(1, len(MANY) - 1)
    first = project.crawl("-a", f"limit={limit}")
    ended = project.crawl()
    site.clear_behaviours()

    assert (first.exit_code, ended.exit_code) == (3, 0)
    assert len(expected) == len(MANY)
    assert state(project) == expected
    assert project.found("menuword") == []
    assert project.crawl().counts["indexed"] == 0


def test_c8_index_when_a_host_gets_more_pages_then_the_known_ones_are_sent_again_once(tmp_path: Path) -> None:
    with SiteProcess() as site:
        write_pages(site, FEW)
        project = project_of(tmp_path, site)
        project.crawl()
        assert len(project.found("menuword")) == len(FEW)
        # Nothing but its text tells the language of the page.
        assert languages(project) == {number: "sv" if number == 3 else LANGUAGES[number] for number in FEW}

        write_pages(site, MANY)
        # The start page alone is another one: it names the new pages, as the others do.
        second, third = project.crawl(), project.crawl()
        assert project.found("menuword") == project.found('"call the house"') == []
        assert len(project.found("kettle")) == len(MANY)
        assert languages(project) == LANGUAGES
        assert third.counts["indexed"] == third.counts["changed"] == 0
        assert second.counts["new"] == len(MANY) - len(FEW)

        edit(project, content={"mode": "all"})
        project.crawl()
        assert len(project.found("menuword")) == len(MANY)
        assert languages(project) == LANGUAGES

        edit(project, content={"language": "nl"})
        project.crawl()
        assert set(languages(project).values()) == {"nl"}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "failpoint", ["blocks.frozen", "blocks.marked", "languages.frozen", "batch.sealed", "index.acked", "batch.marked"]
)
def test_c8_index_when_a_process_dies_while_blocks_are_frozen_then_the_next_one_ends_it(
    site: SiteProcess, expected: dict[str, dict[str, Any]], tmp_path: Path, failpoint: str
) -> None:
    project = project_of(tmp_path, site)
    # These are in the index with all of their text.
    project.crawl("-a", "limit=8")
    assert project.found("menuword") != []
    killed = COMMANDS.run(project.folder, "crawl", project.name, SEARCHCRAWL_FAILPOINT=failpoint)
    again = COMMANDS.run(project.folder, "crawl", project.name, SEARCHCRAWL_FAILPOINT=f"{failpoint}:2")
    ended = project.crawl()

    assert killed.returncode == -9
    assert again.returncode in {-9, 0}
    assert ended.exit_code == 0
    assert state(project) == expected
    assert project.command("verify", project.name).returncode == 0


def test_c9_languages_when_a_process_dies_while_they_are_frozen_then_the_next_one_ends_it(
    site: SiteProcess, tmp_path: Path
) -> None:
    # What stands on most pages is indexed, too: nothing else has documents sent again.
    project = project_of(tmp_path, site, content={"mode": "all"})
    project.crawl("-a", "limit=8")
    assert languages(project)[3] == "sv"
    killed = [
        COMMANDS.run(project.folder, "crawl", project.name, SEARCHCRAWL_FAILPOINT=failpoint)
        for failpoint in ("languages.frozen", "languages.marked")
    ]
    ended = project.crawl()

    assert [each.returncode for each in killed] == [-9, -9]
    assert ended.exit_code == 0
    assert languages(project) == LANGUAGES
    assert project.command("verify", project.name).returncode == 0
    assert project.crawl().counts["indexed"] == 0
    # `test` shows what would be sent.
    assert project.ask("test", site.url(HOST, "/3"), "--source", project.name)["fields"]["language"] == "en"
