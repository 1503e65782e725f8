"""A site of good pages with hostile ones among them: all that is good is indexed, and nothing stands still (X-R13, L6)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.acceptance.test_hostile_pages import PROBE, SWOLLEN
from tests.hostile_answers import ROWS
from tests.hostile_server import HostileServer
from tests.live_pages import document, phrase
from tests.site.client import SiteProcess
from tests.unit.html.test_pieces import COMPARED, NESTED, REOPENED

HOST: Final = "good.acme.test"
HOSTILE: Final = "hostile.acme.test"
#: What takes long once the page is read.
TEXTS: Final[dict[str, Callable[[int], str]]] = {
    "marks": lambda n: "<p>a" + "\u0301\u0323" * n,
    "words": lambda n: "<p>" + "a" * n,
    "blanks": lambda n: "<p>a" + "\u3000" * n + "b",
}
FAMILIES: Final[dict[str, Callable[[int], str]]] = TEXTS | REOPENED | NESTED | COMPARED
#: Bodies that are parsed in the reactor, the largest of these, and one for a worker.
SIZES: Final = (20_000, 195_000, 1_000_000)
#: No turn of the reactor takes longer, and the process takes no more memory.
MOST_SECONDS: Final = 2
MOST_MEGABYTES: Final = 500


def grow(build: Callable[[int], str], size: int) -> bytes:
    """The largest page of a family with about so many bytes."""
    count = 250
    while len(build(2 * count)) < size:
        count *= 2
    low, high = count, 2 * count
    while high - low > count // 20:
        middle = (low + high) // 2
        low, high = (middle, high) if len(build(middle)) <= size else (low, middle)
    return build(low).encode()


def swollen_pages() -> dict[str, bytes]:
    """Pages that are made to take long, by name."""
    grown = {
        f"{name.replace(' ', '-')}-{size}": grow(build, size) for name, build in FAMILIES.items() for size in SIZES
    }
    return grown | SWOLLEN


def wrong_answers() -> dict[str, bytes]:
    """Answers that are no good HTTP, by path."""
    return {path: answer for row in ROWS.values() for path, (answer, _) in row.items()}


def crawl(site: SiteProcess, server: HostileServer, folder: Path, good: int, pages: dict[str, bytes]) -> CrawlProject:
    """Crawls so many good pages, with the hostile ones among them; ends well."""
    paths = [f"/d/{number:04}.html" for number in range(good)]
    for number, path in enumerate(paths):
        site.set_page(HOST, path, document(number))
    for name, body in pages.items():
        site.set_page(HOST, f"/h/{name}.html", body)
    bad = [f"/h/{name}.html" for name in pages]
    bad += [f"http://{HOSTILE}:{server.port}{path}" for path in server.answers]
    # A hostile one comes after some good ones.
    every = -(-good // len(bad))
    mixed = [url for at, each in enumerate(bad) for url in (*paths[at * every : (at + 1) * every], each)]
    site.set_page(HOST, "/", page("start", *mixed))
    tables: dict[str, Any] = source(site, HOST, timeout_seconds=10) | {
        "start": {"urls": [site.url(HOST)], "sitemaps": "off"}
    }
    tables["scope"] = {"include_hosts": [HOST, HOSTILE], "include_ports": [site.port, server.port], "depth": 1}
    return new_project(folder, site, **tables)


def check(project: CrawlProject, good: int, bad: int) -> None:
    """All good pages are found, each by its phrase; each hostile one has a code; the reactor turned all the time."""
    probe = project.folder / "probe.json"
    ended = project.crawl("-s", PROBE, "-s", f"PROBE_FILE={probe}")

    codes, measured = project.codes(), json.loads(probe.read_text("utf-8"))
    found = [number for number in range(good) if project.found(f'"{phrase(number)}"') == [f"{HOST}/d/{number:04}.html"]]
    assert ended.exit_code == 0
    assert found == [*range(good)]
    assert len([url for url in codes if "/h/" in url or url.startswith(HOSTILE)]) >= bad
    assert 0 not in codes.values()
    assert measured["longest_stall_seconds"] < MOST_SECONDS, measured
    assert measured["peak_megabytes"] < MOST_MEGABYTES, measured


@pytest.mark.soak
def test_site_when_hostile_pages_are_among_500_good_ones_then_all_of_these_are_indexed_in_one_run(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages = swollen_pages()
    with HostileServer() as server:
        server.answers = wrong_answers()
        bad = len(pages) + len(server.answers)
        assert bad >= 200

        check(crawl(site, server, tmp_path, 500, pages), 500, bad)
