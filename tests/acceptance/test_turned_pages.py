"""Known pages that turn into one text keep their documents, also those that came before that was seen (L9, X-R17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests import live_pages
from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.live_pages import HOST, LivePages, document, path
from tests.site.client import SiteProcess, configure

pytestmark = pytest.mark.extended

#: What a page becomes, by its number.
Turn = Callable[[int], str]

PAGES: Final = 40
#: So many known pages may become one text in a run.
FREE: Final = 10
#: Visits come in groups of a few, so that the first ones are stored before the others are seen.
SLOW: Final = {"concurrency": 1, "host_concurrency": 1, "delay_seconds": 0.04}
#: Each visit fills the cache: a batch of one document is sent.
TINY: Final = {"threshold_mb": 0.0002}
OTHER: Final = "other.acme.test"
SOON: Final = "<html><title>ACME</title><body><p>We are back soon{rest}</p>"
LOGIN: Final = (
    "<html><title>Sign in</title><body><form method=post>Sign in to go on <input type=password name=p></form>{rest}"
)
TRACE: Final = (
    "<br /><b>Fatal error</b>: Uncaught PDOException: SQLSTATE[HY000] [2002] Connection refused in "
    "/srv/www/lib/database.php:41<br />Stack trace:<br />#0 /srv/www/lib/database.php(41): PDO-&gt;__construct()<br />"
    "#1 /srv/www/sheets/{name}.php({line}): {name}_open(Object(Request))<br />#2 {{main}} thrown"
)
_NAMES: Final = ("gauge", "valve", "pump", "hose", "spring")


def soon(number: int) -> str:
    return SOON.format(rest="")


def nonce(number: int) -> str:
    return LOGIN.format(rest=f"<p>ref {number * 7919:016x} {chr(97 + number % 26) * 5}</p>")


def trace(number: int) -> str:
    return TRACE.format(name=_NAMES[number % len(_NAMES)], line=number)


TURNS: Final[dict[str, Turn]] = {
    "short": soon,
    "time": lambda number: SOON.format(rest=f", at 12:{number:02}"),
    "echoed": lambda number: SOON.format(rest=f". You asked for {path(number)}"),
    "title": lambda number: SOON.format(rest="").replace("ACME", f"Sheet {_NAMES[number % 5]} {number}"),
    "nonce": nonce,
    "trace": trace,
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePages]:
    with live_pages.crawled_once(tmp_path_factory.mktemp("crawled") / "project", PAGES) as live:
        yield live


@pytest.fixture
def live(crawled: LivePages, tmp_path: Path) -> LivePages:
    return crawled.copy(tmp_path / "project")


def turn(live: LivePages, what: Turn, *, pages: range = range(PAGES), start: bool = True) -> None:
    """These pages become something else; unknown paths are 404 as before."""
    for number in pages:
        live.site.set_page(HOST, path(number), what(number))
    if start:
        live.site.set_page(HOST, "/", what(0))


def slow(live: LivePages) -> None:
    plain = live_pages.source(live.site)
    live.project.edit(**{**plain, "fetch": {**plain["fetch"], **SLOW}})


def codes(live: LivePages) -> list[int]:
    return sorted(row["code"] for url, row in live.project.rows().items() if url != f"{HOST}/")


def adds_up(ended: Ended) -> bool:
    counts = ended.counts
    parts = ("to_fetch", "fetched", "fetch_failures", "rejected")
    return counts["discovered"] == sum(counts[name] for name in parts) and min(counts.values()) >= 0


def assert_kept(live: LivePages) -> None:
    assert live.wrong() == []
    assert live.differences() == ""


def assert_healed(live: LivePages) -> None:
    """The next run of the healthy site has all of its texts."""
    live.heal()
    after = live.crawl()
    assert (after.exit_code, after.errors, codes(live)) == (0, "", [200] * PAGES)
    assert_kept(live)


@pytest.mark.matrix
@pytest.mark.few(1)
@pytest.mark.parametrize("name", TURNS)
def test_pages_when_all_turn_into_one_text_then_each_keeps_its_document(live: LivePages, name: str) -> None:
    slow(live)
    turn(live, TURNS[name])

    ended = live.crawl()

    assert_kept(live)
    assert codes(live) == [965] * PAGES
    assert (ended.exit_code, [each["code"] for each in ended.status["warnings"]]) == (8, ["no_start", "sentinel"])
    assert ended.counts["fetch_failures"] == PAGES + 1
    assert adds_up(ended)
    for number in (0, PAGES - 1):
        said = live.project.ask("explain", live.site.url(HOST, path(number)))
        rule = "sentinel: a text that many known pages of the host have now"
        assert (said["decided_by"]["rule"], said["in_index"]) == (rule, True)
    assert_healed(live)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["short", "nonce", "echoed"])
def test_pages_when_the_first_were_sent_already_then_their_texts_are_sent_again(live: LivePages, name: str) -> None:
    configure(live.project.folder, cache=TINY)
    turn(live, TURNS[name])

    ended = live.crawl()

    assert_kept(live)
    assert codes(live) == [965] * PAGES
    assert adds_up(ended)
    assert_healed(live)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["short", "nonce"])
def test_pages_when_records_are_not_preserved_then_each_keeps_its_document(
    crawled: LivePages, tmp_path: Path, name: str
) -> None:
    live = crawled.copy(tmp_path / "project")
    configure(live.project.folder, cache={"preserve": False})
    # The cache gives up what the index has once a batch was sent.
    live.change(range(5))
    slow(live)
    live.crawl()
    turn(live, TURNS[name])

    live.crawl()

    assert_kept(live)
    assert codes(live) == [965] * PAGES
    assert_healed(live)


def test_pages_when_records_are_gone_and_the_first_were_sent_then_no_more_than_the_free_ones_wait_for_the_next_run(
    live: LivePages,
) -> None:
    configure(live.project.folder, cache={**TINY, "preserve": False})
    live.change(range(5))
    live.crawl()
    turn(live, nonce)

    live.crawl()

    assert 0 < len(live.wrong()) <= FREE
    assert live.differences() == ""
    assert_healed(live)


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "limit"), [("nonce", 1), ("short", 5), ("nonce", 5)])
def test_pages_when_runs_end_by_a_limit_then_those_of_all_of_them_count_together(
    live: LivePages, name: str, limit: int
) -> None:
    turn(live, TURNS[name], start=False)

    ended = [live.crawl("-a", f"limit={limit}") for _ in range(FREE + 4 if limit == 1 else 6)]

    assert_kept(live)
    assert {each.exit_code for each in ended} == {3}
    assert all(map(adds_up, ended))
    # The start page, which is as it was, takes a visit.
    assert codes(live).count(965) == min(limit * len(ended) - 1, PAGES)
    # The run that completes these visits the others; the next one visits all.
    live.fill()
    live.crawl()
    assert_healed(live)


@pytest.mark.few(1)
@pytest.mark.parametrize("failpoint", ["row.updated:2", "links.committed:1", "links.committed:2", "batch.sealed"])
def test_pages_when_the_run_is_killed_meanwhile_then_each_keeps_its_document(live: LivePages, failpoint: str) -> None:
    slow(live)
    turn(live, nonce)

    killed = live.crawl(SEARCHCRAWL_FAILPOINT=failpoint)
    ended = live.crawl()

    assert killed.exit_code == -9
    assert_kept(live)
    assert codes(live) == [965] * PAGES
    assert adds_up(ended)
    assert_healed(live)


def test_pages_when_few_turn_then_they_are_taken(live: LivePages) -> None:
    turn(live, lambda number: page("Sheet", text="This sheet is discontinued."), pages=range(8), start=False)

    live.crawl()

    assert len(live.wrong()) == 8
    assert (codes(live).count(965), live.differences()) == (0, "")
    # Copies of one that is indexed.
    assert codes(live).count(909) == 7


def test_pages_when_all_get_another_design_then_they_are_taken(live: LivePages) -> None:
    menu = "<nav>" + " ".join(f"<a href=/>menu item {name}</a>" for name in _NAMES) + "</nav>"
    live.editions = dict.fromkeys(range(0, PAGES, 2), 1)

    live.fill(
        lambda number, edition: document(number, edition).replace("<main>", f"{menu}<main><p>Our sheets, anew.</p>")
    )
    ended = live.crawl()

    assert (ended.exit_code, codes(live)) == (0, [200] * PAGES)
    assert ended.counts["changed"] >= PAGES
    assert_kept(live)


@pytest.mark.few(1)
@pytest.mark.parametrize("cache", [{}, {"preserve": False}], ids=["preserved", "given up"])
def test_pages_when_they_were_always_alike_and_change_a_date_then_they_are_taken(
    clean_site: SiteProcess, tmp_path: Path, cache: dict[str, Any]
) -> None:
    names = [f"station{number:02}" for number in range(PAGES)]

    def reading(number: int, day: int) -> str:
        return page(
            "Station", text=f"Station {number:02} has measured {number + day:02}.{day} degrees on 0{day} March."
        )

    project = new_project(tmp_path, clean_site, project={"cache": cache}, **source(clean_site, OTHER, **SLOW))
    pages(clean_site, OTHER, **{name: reading(number, 1) for number, name in enumerate(names)})
    run(project)
    for day in (2, 3):
        pages(clean_site, OTHER, **{name: reading(number, day) for number, name in enumerate(names)})
        after = run(project)

        assert (after.ended.exit_code, set(after.codes.values())) == (0, {200})
        assert after.counts["changed"] == PAGES
        assert len(project.found(f'"on 0{day} March"')) == PAGES


def test_hosts_when_one_of_two_turns_then_the_other_is_taken(clean_site: SiteProcess, tmp_path: Path) -> None:
    project = new_project(tmp_path, clean_site, **_two_hosts(clean_site))
    live = LivePages(project, PAGES)
    live.fill()
    _fill_other(clean_site, "first")
    live.crawl()
    turn(live, nonce)
    _fill_other(clean_site, "second")

    ended = live.crawl()

    assert_kept(live)
    assert codes_of(project, OTHER) == {200}
    assert codes_of(project, HOST) == {965}
    assert len(project.found('"the second text"')) == PAGES
    assert adds_up(ended)


def codes_of(project: CrawlProject, host: str) -> set[int]:
    return {row["code"] for url, row in project.rows().items() if url.startswith(f"{host}/")}


def _two_hosts(site: SiteProcess) -> dict[str, Any]:
    return {
        "start": {"urls": [site.url(HOST), site.url(OTHER)]},
        "scope": {"include_hosts": [HOST, OTHER]},
        "fetch": {"retries": 0, "host_concurrency": 1, "delay_seconds": 0.02},
    }


def _fill_other(site: SiteProcess, text: str) -> None:
    words = {f"{name}{part}": f"{name} {part}" for name in _NAMES for part in "abcdefgh"}
    pages(site, OTHER, **{name: page(said, text=f"the {text} text: {said} " * 4) for name, said in words.items()})
