"""R14: bombs and entities in sitemaps are neither expanded nor fetched; size is bounded; a cut-off reading is repeated."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page
from tests.crawl_forks import Forks, started
from tests.kill_rounds import KILLED
from tests.site.client import SiteProcess, write_project
from tests.stored_rows import query

pytestmark = pytest.mark.extended

HOST: Final = "bombs.acme.test"
PROBE: Final = 'EXTENSIONS={"tests.acceptance.support_reactor_probe.ReactorProbe": 1}'
#: Three groups of the writer.
LISTED: Final = 12_000


@pytest.fixture(autouse=True)
def start(clean_site: SiteProcess) -> None:
    clean_site.set_page(HOST, "/", page("start"))


@pytest.fixture
def canary() -> Iterator[socket.socket]:
    """A port that nobody may connect to."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        yield listening


def config(site: SiteProcess, *paths: str, **scope: Any) -> dict[str, Any]:
    """A source of the host, with these sitemaps."""
    return {
        "start": {"urls": [site.url(HOST)], "sitemaps": [site.url(HOST, path) for path in paths] or "auto"},
        "scope": {"include_hosts": [HOST], **scope},
        "fetch": {"retries": 0},
    }


def put(site: SiteProcess, path: str, body: str | bytes) -> None:
    site.set_page(HOST, path, body, content_type="application/xml")


def listing(site: SiteProcess, count: int, *, first: int = 0) -> bytes:
    """A gzipped sitemap of so many pages."""
    urls = (site.url(HOST, f"/listed/{number}.html") for number in range(first, first + count))
    entries = "".join(f"<url><loc>{url}</loc><lastmod>2001-01-01</lastmod></url>" for url in urls)
    return gzip.compress(f"<urlset>{entries}</urlset>".encode(), 1)


def packed(start: bytes, filling: bytes, *, megabytes: int) -> bytes:
    """A gzip file of what begins so and goes on for long; made in pieces, as a child inherits its parent's peak."""
    stream = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)
    pieces = (stream.compress(filling * (1 << 20)) for _ in range(megabytes))
    return b"".join((stream.compress(start), *pieces, stream.flush()))


def probed(project: CrawlProject) -> dict[str, Any]:
    """A crawl that ends well, and what the probe measured."""
    file = project.folder / "probe.json"
    ended = project.crawl("-s", PROBE, "-s", f"PROBE_FILE={file}")
    assert ended.exit_code == 0, ended.errors
    measured: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return measured


def doctype(canary: socket.socket, secret: Path) -> str:
    """A billion laughs, and entities, a DTD and parameter entities that lead to a port and a file."""
    port = canary.getsockname()[1]
    laughs = "".join(f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 10))
    return (
        f'<!DOCTYPE urlset SYSTEM "http://127.0.0.1:{port}/sitemap.dtd" [<!ENTITY l0 "http://{HOST}/laugh">{laughs}'
        f'<!ENTITY file SYSTEM "file://{secret}"><!ENTITY port SYSTEM "http://127.0.0.1:{port}/entity">'
        f'<!ENTITY % dtd SYSTEM "http://127.0.0.1:{port}/parameter"> %dtd;]>'
    )


def test_r14_sitemaps_when_they_hold_bombs_and_entities_then_nothing_is_expanded_or_fetched(
    site: SiteProcess, canary: socket.socket, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(site.url(HOST, "/read-from-a-file.html"), "utf-8")
    good = f"<url><loc>{site.url(HOST, '/good.html')}</loc></url>"
    entities = "".join(f"<url><loc>&{name};</loc></url>" for name in ("l9", "file", "port"))
    put(site, "/sitemap-bomb.xml", f"<?xml version='1.0'?>{doctype(canary, secret)}<urlset>{entities}{good}</urlset>")
    include = f'<xi:include href="file://{secret}" parse="text"/>'
    put(
        site,
        "/sitemap-include.xml",
        f"<urlset xmlns:xi='http://www.w3.org/2001/XInclude'><url><loc>{include}</loc></url></urlset>",
    )
    # A gigabyte of blanks, and one of a URL that never ends.
    put(site, "/sitemap-blanks.gz", packed(b"<urlset>", b" ", megabytes=1024))
    put(site, "/sitemap-long.gz", packed(b"<urlset><url><loc>http://x/", b"a", megabytes=256))
    names = ("bomb.xml", "include.xml", "blanks.gz", "long.gz")
    project = new_project(tmp_path / "project", site, **config(site, *(f"/sitemap-{name}" for name in names)))
    site.set_page(HOST, "/good.html", page("good"))

    measured = probed(project)

    with pytest.raises(BlockingIOError):
        canary.accept()
    assert project.codes() == {f"{HOST}/": 200, f"{HOST}/good.html": 200}
    assert measured["peak_megabytes"] < 300
    assert measured["longest_stall_seconds"] < 2


def test_sitemap_when_it_lists_fifty_thousand_urls_then_memory_is_that_of_five_thousand(
    site: SiteProcess, tmp_path: Path
) -> None:
    peaks = {}
    for count in (5000, 50_000):
        put(site, "/sitemap.xml", listing(site, count))
        # Each gets its row, and none is asked for.
        project = new_project(tmp_path / str(count), site, **config(site, exclude_urls=["*/listed/*"]))
        peaks[count] = probed(project)["peak_megabytes"]
        assert len(project.rows()) == count + 1

    assert peaks[50_000] < peaks[5000] + 60


def test_sitemap_when_a_kill_cuts_its_reading_off_then_the_next_start_reads_it_again(
    forks: Forks, site: SiteProcess, tmp_path: Path
) -> None:
    put(site, "/sitemap.xml", listing(site, LISTED))
    folder = write_project(tmp_path, site, **config(site, exclude_urls=["*/listed/*"]))

    codes = [forks.run(folder, "crawl", "demo", SEARCHCRAWL_FAILPOINT=f"links.committed:{count}") for count in (2, 3)]
    between = query(folder, "SELECT count(*) FROM urls")[0][0]
    finished = forks.run(folder, "crawl", "demo")
    site.clear_log()
    again = forks.run(folder, "crawl", "demo")

    assert codes == [KILLED, KILLED]
    assert 1 < between < LISTED
    assert (finished, again) == (0, 0)
    assert query(folder, "SELECT count(*), count(lastmod_ms) FROM urls") == [(LISTED + 1, LISTED)]
    assert [(entry["path"], entry["status"]) for entry in site.log() if "sitemap" in entry["path"]] == [
        ("/sitemap.xml", 304)
    ]


def test_sitemaps_when_thousands_are_left_and_the_run_is_to_end_then_it_ends_and_the_next_reads_the_rest(
    forks: Forks, site: SiteProcess, tmp_path: Path
) -> None:
    paths = [f"/sitemap-{number}.xml" for number in range(40)]
    names = "".join(f"<sitemap><loc>{site.url(HOST, path)}</loc></sitemap>" for path in paths)
    put(site, "/sitemap.xml", f"<sitemapindex>{names}</sitemapindex>")
    for number, path in enumerate(paths):
        put(site, path, listing(site, 2, first=2 * number))
    slow = config(site, exclude_urls=["*/listed/*"])
    folder = write_project(tmp_path, site, **slow | {"fetch": {"retries": 0, "delay_seconds": 2}})

    with started(forks.start(folder, "crawl", "demo")) as running:
        running.until(lambda: any(entry["path"] in paths for entry in site.log()))
        running.signal(signal.SIGTERM)
        stopped = running.wait()
    early = Counter(entry["path"] for entry in site.log())
    write_project(tmp_path, site, **slow)
    finished = forks.run(folder, "crawl", "demo")

    assert stopped == 3
    assert len(early) < len(paths) // 2
    assert finished == 0
    assert query(folder, "SELECT count(*) FROM urls") == [(2 * len(paths) + 1,)]


@pytest.mark.parametrize(
    "fetch",
    [{"host_concurrency": 2}, pytest.param({"delay_seconds": 0.3}, marks=pytest.mark.soak)],
    ids=["two at once", "with a delay"],
)
def test_pages_when_a_long_list_of_sitemaps_is_read_then_both_take_turns_within_the_limits(
    site: SiteProcess, tmp_path: Path, fetch: dict[str, Any]
) -> None:
    paths = [f"/sitemap-{number}.xml" for number in range(20)]
    names = "".join(f"<sitemap><loc>{site.url(HOST, path)}</loc></sitemap>" for path in paths)
    put(site, "/sitemap.xml", f"<sitemapindex>{names}</sitemapindex>")
    for path in paths:
        put(site, path, listing(site, 1))
        site.set_behaviour(HOST, path, delay_seconds=0.2)
    site.set_page(HOST, "/", page("start", *(f"/{number}.html" for number in range(10))))
    for number in range(10):
        site.set_page(HOST, f"/{number}.html", page(str(number)))
    source = config(site, exclude_urls=["*/listed/*"])
    project = new_project(tmp_path, site, **source | {"fetch": {"retries": 0, **fetch}})

    ended = project.crawl()

    log = site.log()
    order = [entry["path"] for entry in log]
    assert ended.exit_code == 0
    assert set(paths) < set(order)
    # The sitemaps are many and slow, the pages few: these are done when as many of those are.
    assert max(order.index(f"/{number}.html") for number in range(10)) < order.index(sorted(paths, key=order.index)[15])
    assert max(entry["open"] for entry in log) == (1 if "delay_seconds" in fetch else 2)
