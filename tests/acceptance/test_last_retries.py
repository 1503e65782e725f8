"""The end of a run waits for nothing that will not come: retries at hosts that never answered, once nothing else is left."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.codes import Code
from tests.acceptance.support_project import CrawlProject, new_project, wait_until
from tests.acceptance.support_stories import page, source
from tests.crawl_forks import RETRIES, Forks, started
from tests.site.client import SiteProcess
from tests.stored_rows import query_columns
from tests.tcp_server import TcpServer, read_head

pytestmark = pytest.mark.extended

HOST: Final = "manual.acme.test"
#: With their pauses they take more than two minutes.
MANY: Final = 7
#: So often a host fails in a row before it is blocked.
BLOCKED_AFTER: Final = 5
GIVEN_UP: Final = "no retry: the host never answered in this run, and nothing else was left"
UNHURRIED: Final = {RETRIES: "1"}


class Port(TcpServer):
    """Says nothing to the first ``fails`` connections, and answers those that follow; ``asked`` counts all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.fails = 1_000

    def serve(self, connection: socket.socket) -> None:
        self.asked += 1
        if self.asked <= self.fails:
            while connection.recv(65536):
                pass
            return
        path = read_head(connection).split(b" ")[1].decode()
        body = page(f"the page {path} of the port", "/further.html").encode()
        status = "200 OK" if path in {"/a.html", "/further.html"} else "404 Not Found"
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        connection.sendall(head.encode() + body)


@pytest.fixture
def port() -> Iterator[Port]:
    with Port() as port:
        yield port


def url(port: Port, path: str = "/a.html") -> str:
    return f"http://port.acme.test:{port.port}{path}"


def make(
    folder: Path,
    site: SiteProcess,
    links: Sequence[str],
    *,
    starts: Sequence[str] = (),
    sitemaps: Sequence[str] = (),
    **fetch: Any,
) -> CrawlProject:
    """A manual of some pages which link to the port."""
    names = [f"/page{number}.html" for number in range(10)]
    site.set_pages(HOST, {"/": page("the manual", *names), **{name: page(f"text of {name}", *links) for name in names}})
    given = source(
        site, HOST, scope={"include_hosts": ["acme.test"]}, **{"retries": MANY, "timeout_seconds": 2, **fetch}
    )
    start = {"urls": [*(starts or [site.url(HOST)])], "sitemaps": [*sitemaps] or "off"}
    # Each try is one connection.
    return new_project(folder, site, **{**given, "start": start, "robots": {"obey": False}})


def row(project: CrawlProject, address: str) -> dict[str, Any]:
    """The row of a URL."""
    (found,) = (row for row in query_columns(project.folder, "SELECT * FROM urls") if row["url"] == address)
    return found


@pytest.mark.parametrize("processes", [1, 2])
def test_retries_when_a_host_never_answered_and_nothing_else_is_left_then_it_is_given_up(
    tmp_path: Path, site: SiteProcess, port: Port, processes: int
) -> None:
    project = make(tmp_path, site, [url(port)], processes=processes)
    ended = project.crawl(**UNHURRIED)
    asked, after = port.asked, row(project, url(port))
    explained = str(project.ask("explain", url(port)))
    (shown,) = [line for line in project.lines("urls", project.name) if line["url"] == url(port)]
    port.fails = 0
    project.crawl(**UNHURRIED)

    assert ended.exit_code == 0
    assert 1 < asked < BLOCKED_AFTER
    assert (after["code"], after["failed_runs"], after["attempts"]) == (Code.TIMEOUT, 1, 0)
    assert (shown["state"], shown["code"]) == ("failed", Code.TIMEOUT)
    assert GIVEN_UP in explained
    assert ended.counts["fetch_failures"] == 1
    assert f"given up, as nothing else is left: port.acme.test:{port.port} ({Code.TIMEOUT})" in project.log()
    # The next run asks again.
    assert row(project, url(port))["code"] == 200


def test_retries_when_a_dead_host_has_several_pages_then_all_end_with_the_code_of_their_cause(
    tmp_path: Path, site: SiteProcess, port: Port
) -> None:
    paths = [f"/{number}.html" for number in range(8)]
    project = make(tmp_path, site, [url(port, path) for path in paths])

    project.crawl(**UNHURRIED)

    assert {row(project, url(port, path))["code"] for path in paths} == {Code.TIMEOUT}
    assert 1 < port.asked <= BLOCKED_AFTER


def test_retries_when_no_host_ever_answered_then_all_are_made(tmp_path: Path, site: SiteProcess, port: Port) -> None:
    project = make(tmp_path, site, [], starts=[url(port)], retries=2)

    project.crawl(**UNHURRIED)

    assert port.asked == 3
    assert GIVEN_UP not in str(row(project, url(port))["error"])


def test_retries_when_the_host_comes_before_its_time_is_over_then_its_pages_are_read(
    tmp_path: Path, site: SiteProcess, port: Port
) -> None:
    port.fails = 1
    project = make(tmp_path, site, [url(port)])

    project.crawl(**UNHURRIED)

    assert [row(project, url(port, path))["code"] for path in ("/a.html", "/further.html")] == [200, 200]


def test_retries_when_the_host_was_there_in_this_run_then_all_are_made(tmp_path: Path, site: SiteProcess) -> None:
    project = make(tmp_path, site, [site.url(HOST, "/broken.html")], retries=3)
    site.set_behaviour(HOST, "/broken.html", mode="hang")
    site.clear_log()

    project.crawl(**UNHURRIED)

    assert site.requested().count(f"{HOST}/broken.html") == 4
    assert GIVEN_UP not in str(row(project, site.url(HOST, "/broken.html"))["error"])


def test_retries_when_a_sitemap_is_at_a_host_that_never_answered_then_it_is_left_to_the_next_run(
    tmp_path: Path, site: SiteProcess, port: Port
) -> None:
    project = make(tmp_path, site, [], sitemaps=[url(port, "/sitemap.xml")])

    ended = project.crawl(**UNHURRIED)

    assert ended.exit_code == 0
    assert 1 < port.asked < BLOCKED_AFTER
    assert f"given up, as nothing else is left: port.acme.test:{port.port} ({Code.TIMEOUT})" in project.log()
    assert f"sitemap {url(port, '/sitemap.xml')} cannot be read ({Code.TIMEOUT})" in project.log()


def test_retries_when_the_run_is_killed_meanwhile_then_it_goes_on_and_ends_the_same(
    tmp_path: Path, site: SiteProcess, port: Port
) -> None:
    project = make(tmp_path, site, [url(port)])
    with Forks(1) as forks, started(forks.start(project.folder, "crawl", project.name, **UNHURRIED)) as running:
        wait_until(lambda: port.asked > 1)
        running.signal(signal.SIGKILL)
        running.wait()
    ended = project.crawl(**UNHURRIED)
    after = row(project, url(port))

    assert ended.exit_code == 0
    assert port.asked < BLOCKED_AFTER + 2
    assert (after["code"], after["failed_runs"], after["attempts"]) == (Code.TIMEOUT, 1, 0)
    assert GIVEN_UP in after["error"]
    assert len(project.indexed()) == 11
