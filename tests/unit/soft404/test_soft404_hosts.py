"""Of very many hosts those in use stay known: which page they answer to any path (L9, X-T6)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from searchcrawl import urls
from searchcrawl.codes import Code
from searchcrawl.http.side_requests import SideRequests
from searchcrawl.items import ARCHIVE_ETAG, Document, Outcome, Page
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.boundary import Boundary
from searchcrawl.soft404 import soft404_pipeline
from searchcrawl.soft404.soft404_pipeline import PlaceholderPagePipeline
from searchcrawl.store import host_table
from tests.factories import ANY_TARGET, claim, document
from tests.filled_store import FilledStore

NOT_HERE: Final = "We are sorry: the page that you asked for is not here any more. Try the menu, or look for it."
OWN: Final = "The gauge has to be calibrated in the first week of each quarter by the person who signs for it."
#: How many hosts are kept.
KEPT: Final = 3


class Hosts:
    """Each answers any path with one page; counts the probes of each."""

    def __init__(self) -> None:
        self.probes: Counter[str] = Counter()

    async def download(self, request: Request) -> Response:
        self.probes[str(urlsplit(request.url).hostname)] += 1
        return HtmlResponse(request.url, body=f"<p>{NOT_HERE}</p>".encode(), headers={"Content-Type": "text/html"})


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[FilledStore]:
    store = FilledStore(tmp_path, "sqlite:///var/store.db")
    yield store
    store.close()


@pytest.fixture
def hosts() -> Hosts:
    return Hosts()


@pytest.fixture
def tested(filled: FilledStore, hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> PlaceholderPagePipeline:
    monkeypatch.setattr(soft404_pipeline, "_MAX_HOSTS", KEPT)
    monkeypatch.setattr(soft404_pipeline, "LEAST_PAGES", 1)
    filled.run.boundary = Boundary(allow_all=True)
    side = SideRequests(download=hosts.download, rate_limiter=RateLimiter(), targets=ANY_TARGET)
    return PlaceholderPagePipeline(filled.run, side, None)


async def sent(tested: PlaceholderPagePipeline, host: str, text: str, *, number: int = 1, path: str = "") -> bool:
    """Whether a page of a host is taken for content."""
    url = f"http://{host}/{path or f'{number}.html'}"
    etag = f'{ARCHIVE_ETAG}1"' if "!/" in url else None
    page = document(f"<p>{text}</p>", text=text, claim=claim(url=url))
    page = replace(page, converter="html", page=Page(text=text), etag=etag)
    found = tested.process_document(page)
    ended = await found if isinstance(found, Awaitable) else found
    assert isinstance(ended, Document) or (isinstance(ended, Outcome) and ended.code == Code.SENTINEL)
    return isinstance(ended, Document)


@pytest.mark.parametrize("others", [1, KEPT, 20])
def test_host_when_it_is_in_use_then_it_stays_known_among_many_others(
    tested: PlaceholderPagePipeline, hosts: Hosts, others: int
) -> None:
    async def crawl() -> list[bool]:
        taken = []
        for number in range(others):
            taken.append(await sent(tested, "used.test", NOT_HERE, number=number))
            taken.append(await sent(tested, f"h{number}.test", NOT_HERE, number=number))
        return taken

    taken = asyncio.run(crawl())

    assert not any(taken)
    assert hosts.probes["used.test"] == 2


def test_hosts_when_they_were_dropped_then_the_table_knows_of_them_all_the_same(
    tested: PlaceholderPagePipeline, filled: FilledStore
) -> None:
    names = [f"h{number}.test" for number in range(3 * KEPT)]

    async def crawl() -> None:
        for name in names:
            await sent(tested, name, NOT_HERE, number=1)
            assert await sent(tested, name, OWN, number=2)
        await tested.close_spider()

    asyncio.run(crawl())

    with filled.database.read_once() as transaction:
        assert all(host_table.answers_any(transaction, urls.host_and_port(f"http://{name}/")) for name in names)


def test_host_when_a_file_in_an_archive_comes_first_then_it_is_asked_beside_its_pages_alone(
    tested: PlaceholderPagePipeline, hosts: Hosts
) -> None:
    async def crawl() -> tuple[bool, int, bool]:
        in_archive = await sent(tested, "used.test", NOT_HERE, path="pack.zip!/copy.html")
        return in_archive, hosts.probes["used.test"], await sent(tested, "used.test", NOT_HERE)

    assert asyncio.run(crawl()) == (True, 0, False)
