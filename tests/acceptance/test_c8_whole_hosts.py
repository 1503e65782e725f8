"""What other pages of a host tell of a page (C8, C9, G2): what stands on most of them is not indexed, and most tell the language of
the others; pages that share a title are told by their headings; pages are found by what others call them in their main text.

Whatever the order of visits, and whenever a process dies.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import source
from tests.crawl_forks import COMMANDS
from tests.languages import TEXTS
from tests.site.client import SiteProcess

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


def project_of(folder: Path, site: SiteProcess, host: str = HOST, path: str = "/", **tables: Any) -> CrawlProject:
    return new_project(folder, site, **{**source(site, host, path), **tables})


def edit(project: CrawlProject, **tables: Any) -> None:
    project.edit(**source(project.site, HOST), **tables)


def state(project: CrawlProject) -> dict[str, dict[str, Any]]:
    """The documents of the index, without what says when they were sent."""
    return {
        hit.id: {name: value for name, value in hit.fields.items() if name not in _TIMES} for hit in project.hits("*")
    }


def die_at(project: CrawlProject, *failpoints: str) -> list[int]:
    """Kills a crawl at each of these; how they ended, and the one that follows."""
    kills = [{"SEARCHCRAWL_FAILPOINT": failpoint} for failpoint in failpoints]
    codes = [COMMANDS.run(project.folder, "crawl", project.name, **kill).returncode for kill in kills]
    return [*codes, project.crawl().exit_code]


def languages(project: CrawlProject) -> dict[int, str]:
    return {int(hit.fields["url"].rpartition("/")[2] or 0): hit.fields.get("language", "") for hit in project.hits("*")}


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    write_pages(site, MANY)
    write_titled(site)
    write_named(site)
    return site


@pytest.fixture(scope="module")
def expected(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    project = project_of(tmp_path_factory.mktemp("expected"), site)
    assert project.crawl().exit_code == 0
    assert languages(project) == LANGUAGES
    return state(project)


@pytest.mark.extended
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
    for number in MANY:
        site.set_behaviour(HOST, f"/{number or ''}")

    assert (first.exit_code, ended.exit_code) == (3, 0)
    assert len(expected) == len(MANY)
    assert state(project) == expected
    assert project.found("menuword") == []
    assert project.crawl().counts["indexed"] == 0


@pytest.mark.extended
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


@pytest.mark.extended
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
    killed, again, ended = die_at(project, failpoint, f"{failpoint}:2")

    assert (killed, again in {-9, 0}, ended) == (-9, True, 0)
    assert state(project) == expected
    assert project.command("verify", project.name).returncode == 0


@pytest.mark.extended
def test_c9_languages_when_a_process_dies_while_they_are_frozen_then_the_next_one_ends_it(
    site: SiteProcess, tmp_path: Path
) -> None:
    # What stands on most pages is indexed, too: nothing else has documents sent again.
    project = project_of(tmp_path, site, content={"mode": "all"})
    project.crawl("-a", "limit=8")
    assert languages(project)[3] == "sv"

    assert die_at(project, "languages.frozen", "languages.marked") == [-9, -9, 0]
    assert languages(project) == LANGUAGES
    assert project.command("verify", project.name).returncode == 0
    assert project.crawl().counts["indexed"] == 0
    # `test` shows what would be sent.
    assert project.ask("test", site.url(HOST, "/3"), "--source", project.name)["fields"]["language"] == "en"


TITLED: Final = "titles.acme.test"
SEVEN: Final = range(7)


def write_titled(site: SiteProcess, *, sharing: int = 6) -> None:
    """The first page has a title of its own, the last one none."""
    for number in SEVEN:
        title = "Kettles" if number == 0 else "Member List" if number < sharing else f"Lid {number}"
        others = "".join(f"<a href=/{other}>{other}</a> " for other in SEVEN)
        head = f"<title>{title}</title>" if number < SEVEN[-1] else ""
        body = f"<main><h1>Kettle {number} Member List</h1><p>It boils the water of kind {number}.</main><nav>{others}</nav>"
        site.set_page(TITLED, f"/{number}", f"<html lang=en>{head}<body>{body}</html>")


def titles(project: CrawlProject) -> list[str]:
    found = {fields["url"]: fields["title"] for fields in state(project).values()}
    return [found[url] for url in sorted(found)]


TITLES: Final = ["Kettles", *(f"Member List · Kettle {number}" for number in SEVEN[1:-1]), "Kettle 6 Member List"]


def test_c8_titles_when_pages_share_one_then_each_is_told_by_its_heading(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(tmp_path, site, TITLED, "/0")

    project.crawl()
    again = project.crawl()

    assert titles(project) == TITLES
    # Records and digests know nothing of it.
    assert again.counts["indexed"] == again.counts["changed"] == 0
    assert project.command("verify", project.name).returncode == 0
    assert len(project.found('title:"member list"')) == len(SEVEN) - 1
    assert project.ask("test", site.url(TITLED, "/3"), "--source", project.name)["fields"]["title"] == TITLES[3]
    said = [project.command("explain", project.site.url(TITLED, f"/{number}")).stdout for number in (0, 3, 6)]
    assert "shown as" not in said[0]
    assert f'title "Member List", shown as "{TITLES[3]}", because other pages share its title' in said[1]
    assert f'shown as "{TITLES[6]}", because it has no title' in said[2]


@pytest.mark.extended
def test_c8_titles_when_fewer_pages_share_one_then_they_have_their_own_again(tmp_path: Path) -> None:
    with SiteProcess() as site:
        write_titled(site, sharing=4)
        project = project_of(tmp_path, site, TITLED, "/0")
        project.crawl()
        assert titles(project)[1] == "Member List"

        write_titled(site)
        project.crawl()
        assert titles(project) == TITLES

        write_titled(site, sharing=3)
        project.crawl()
        assert titles(project)[:3] == ["Kettles", "Member List", "Member List"]
        assert project.crawl().counts["indexed"] == 0


@pytest.mark.extended
@pytest.mark.few(1)
@pytest.mark.parametrize("failpoint", ["titles.frozen", "titles.marked", "anchors.frozen", "batch.sealed"])
def test_c8_titles_when_a_process_dies_while_they_are_frozen_then_the_next_one_ends_it(
    site: SiteProcess, tmp_path: Path, failpoint: str
) -> None:
    project = project_of(tmp_path, site, TITLED, "/0")
    # These are in the index with what they say.
    project.crawl("-a", "limit=6")
    assert "Member List" in titles(project)
    killed, _, ended = die_at(project, failpoint, f"{failpoint}:2")

    assert killed in {-9, 0}
    assert failpoint == "anchors.frozen" or killed == -9
    assert ended == 0
    assert titles(project) == TITLES
    assert project.command("verify", project.name).returncode == 0


@pytest.mark.extended
def test_c8_titles_when_a_host_is_left_then_nothing_is_known_of_it(site: SiteProcess, tmp_path: Path) -> None:
    project = project_of(tmp_path, site, TITLED, "/0")
    project.crawl()
    project.edit(**source(site, TITLED, "/0", scope={"exclude_urls": ["*/4", "*/5", "*/6"]}))
    project.crawl()

    # Three still share it.
    assert titles(project) == TITLES[:4]


NAMED: Final = "anchors.acme.test"
TWELVE: Final = range(12)
#: What another page calls each, by number: no word is in a title or a text of its own.
NAMES: Final = ("zero", "uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci", "undici")


def named_page(number: int, links: Mapping[str, str], *, head: str = "") -> str:
    texts = "".join(f"<p>Read of the <a href={href}>{text}</a>." for href, text in links.items())
    others = "".join(f"<a href=/{other}>menuword {other}</a>" for other in TWELVE)
    return (
        f"<html lang=en><title>Kettle {number}</title>{head}<body><nav>{others}</nav><main><h1>Kettle {number}</h1>"
        f"<p>It boils the water of kind {number}, as a kettle of kind {number} does on every day.{texts}</main></html>"
    )


def write_named(site: SiteProcess) -> None:
    """Each page names the next one, and says the title of the one after that."""
    for number in TWELVE:
        after, third = (number + 1) % len(TWELVE), (number + 2) % len(TWELVE)
        links = {f"/{after}": NAMES[after], f"/{third}": f"Kettle {third}", f"/{number}": "itself", "/old": "oldtimer"}
        site.set_page(NAMED, f"/{number}", named_page(number, links if number < 2 else dict(list(links.items())[:3])))
    site.set_behaviour(NAMED, "/old", status=301, headers={"Location": "/5"})


def named(project: CrawlProject) -> dict[str, list[str]]:
    """What is indexed of links to each page, by the last part of its URL."""
    return {path: said for path, fields in of_pages(project).items() if (said := fields.get("anchor"))}


def of_pages(project: CrawlProject) -> dict[str, dict[str, Any]]:
    return {fields["url"].rpartition("/")[2]: fields for fields in state(project).values()}


def found(project: CrawlProject, words: str) -> list[str]:
    return [url.rpartition("/")[2] for url in project.found(words)]


@pytest.fixture(scope="module")
def expected_names(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    project = project_of(tmp_path_factory.mktemp("expected_names"), site, NAMED, "/0")
    assert project.crawl().exit_code == 0
    wanted = {str(number): [NAMES[number]] for number in TWELVE}
    assert named(project) == {**wanted, "5": ["cinque", "oldtimer"]}
    return state(project)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(20))
def test_c8_anchors_when_pages_come_in_another_order_then_the_index_is_the_same(
    site: SiteProcess, expected_names: dict[str, dict[str, Any]], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for number in TWELVE:
        site.set_behaviour(NAMED, f"/{number}", delay_seconds=round(chance.random() * 0.3, 2))
    # Some go out before the pages that name them were seen.
    project = project_of(
        tmp_path, site, NAMED, "/0", fetch={"concurrency": 8, "host_concurrency": chance.randint(1, 8)}
    )
    first = project.crawl("-a", f"limit={chance.randint(1, len(TWELVE) - 1)}")
    ended = project.crawl()
    for number in TWELVE:
        site.set_behaviour(NAMED, f"/{number}")

    assert (first.exit_code, ended.exit_code) == (3, 0)
    assert state(project) == expected_names
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
        write_named(site)
        project = project_of(tmp_path, site, NAMED, "/0", lifecycle={"max_delete_percent": 100})
        project.crawl()
        before = of_pages(project)
        explained = project.command("explain", site.url(NAMED, "/5")).stdout
        assert 'links to it say "cinque", "oldtimer"' in explained

        # Another word for one page, and none any more for another.
        site.set_page(NAMED, "/3", named_page(3, {"/4": "vier", "/5": "Kettle 5"}))
        site.set_page(NAMED, "/6", named_page(6, {"/8": "Kettle 8"}))
        changed = project.crawl()
        assert (changed.counts["changed"], changed.counts["indexed"]) == (2, 4)
        assert sorted(found(project, "vier")) == ["3", "4"]
        assert found(project, "quattro") == found(project, "sette") == []
        assert of_pages(project)["4"]["checksum"] == before["4"]["checksum"]

        # A redirect leads elsewhere.
        site.set_behaviour(NAMED, "/old", status=301, headers={"Location": "/9"})
        assert project.crawl().counts["indexed"] == 2
        # Two pages have it in their own text.
        assert sorted(found(project, "oldtimer")) == ["0", "1", "9"]

        # It leads nowhere.
        site.set_behaviour(NAMED, "/old", status=404)
        assert project.crawl().counts["indexed"] == 1
        assert sorted(found(project, "oldtimer")) == ["0", "1"]

        # A page that leaves says nothing any more, in the run that removes it.
        site.set_behaviour(NAMED, "/3", status=410)
        assert project.crawl().counts["deleted"] == 1
        assert found(project, "vier") == []
        assert project.crawl().counts["indexed"] == 0


def test_c8_anchors_when_an_orphan_is_removed_then_what_it_said_goes_in_the_same_run(tmp_path: Path) -> None:
    with SiteProcess() as site:
        body = "<html lang=en><title>{}</title><body><p>A page of some words.{}</html>"
        site.set_page(NAMED, "/0", body.format("start", "<p><a href=/1>uno</a> <a href=/2>due</a>"))
        site.set_page(NAMED, "/1", body.format("first", "<p>Read of <a href=/2>quattro</a>"))
        site.set_page(NAMED, "/2", body.format("second", ""))
        project = project_of(tmp_path, site, NAMED, "/0", lifecycle={"orphans": "delete", "max_delete_percent": 100})
        project.crawl()
        assert named(project) == {"1": ["uno"], "2": ["due", "quattro"]}

        site.set_page(NAMED, "/0", body.format("start", "<p><a href=/2>due</a>"))
        assert project.crawl().counts["deleted"] == 1
        assert named(project) == {"2": ["due"]}
        assert project.crawl().counts["indexed"] == 0


def test_c8_anchors_when_a_page_is_forgotten_then_what_it_said_is_gone_at_once(tmp_path: Path) -> None:
    with SiteProcess() as site:
        write_named(site)
        project = project_of(tmp_path, site, NAMED, "/0")
        project.crawl()

        done = project.command("forget", project.site.url(NAMED, "/3"), "--yes")
        assert done.returncode == 0, done.stderr
        assert found(project, "quattro") == []
        assert "3" not in named(project)

        # One that says something else since, in a run that did not complete.
        site.set_page(NAMED, "/6", named_page(6, {"/8": "Kettle 8"}))
        assert project.crawl("-a", "limit=12").counts["changed"] == 1
        assert found(project, "sette") == ["7"]
        assert project.command("forget", project.site.url(NAMED, "/6"), "--yes").returncode == 0
        assert found(project, "sette") == []
