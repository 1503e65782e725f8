"""Answers of the cache in the place of a download, several at once (D9, L11)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import BaseSettings

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.cache.segment import StoredPage
from searchcrawl.exceptions import CacheError
from searchcrawl.http.replay_middleware import Claims, ReplayMiddleware, find_further
from searchcrawl.http.visit_end import VisitEnded
from searchcrawl.items import Claim, FetchedAnswer, Outcome, Place
from searchcrawl.run import Run
from searchcrawl.stages import Stages
from searchcrawl.store.urls.review_table import StoredAnswer

HOST: Final = "the cache"


def claim_of(number: int) -> Claim:
    return Claim(url_id=number, url=f"http://a.test/{number}", host_id=1, depth=0)


def answer_of(number: int, place: Place, *, redirects: str | None = None, size: int = 10) -> StoredAnswer:
    return StoredAnswer(number, redirects, *place, size)


class Waiting:
    """The claims that wait, as the frontier has them."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.claims = deque(map(claim_of, numbers))
        self.given_back: list[int] = []

    def take(self) -> tuple[str, Claim] | None:
        return (HOST, self.claims.popleft()) if self.claims else None

    def put_back(self, claim: Claim, host: str) -> None:
        assert host == HOST
        self.given_back.append(claim.url_id)
        self.claims.appendleft(claim)


@pytest.fixture
def cache(tmp_path: Path) -> tuple[DocumentCache, list[Place]]:
    """A cache with a hundred pages."""
    return fill(tmp_path, base_url=None)


@pytest.fixture
def led(tmp_path: Path) -> tuple[DocumentCache, list[Place]]:
    """The same; all pages came from another URL."""
    return fill(tmp_path, base_url="http://a.test/target")


def fill(folder: Path, *, base_url: str | None) -> tuple[DocumentCache, list[Place]]:
    cache = DocumentCache(SegmentFolder(folder / "cache"), folder)
    writer = cache.open_writer(1, 0)
    places = []
    for number in range(100):
        page = StoredPage(
            url=f"http://a.test/{number}",
            status=200,
            headers=((b"Content-Type", b"text/html"),),
            body=b"<p>%d" % number,
            fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
            fields={"content": f"text {number}"},
            base_url=base_url,
        )
        places.append(writer.append(page))
    writer.close()
    return cache, places


def make(
    cache: tuple[DocumentCache, list[Place]], waiting: Waiting, *, changed: dict[int, StoredAnswer] | None = None
) -> ReplayMiddleware:
    middleware = ReplayMiddleware(cache[0])
    middleware.begin_groups(Claims(waiting.take, waiting.put_back))
    middleware.expect((changed or {}).get(number, answer_of(number, place)) for number, place in enumerate(cache[1]))
    return middleware


def ask(middleware: ReplayMiddleware, number: int = 0) -> tuple[Response, list[FetchedAnswer | Outcome]]:
    request = Request(f"http://a.test/{number}", meta={"claim": claim_of(number)})
    response = asyncio.run(middleware.process_request(request))
    return response, list(find_further(response))


def number_of(answer: Response | FetchedAnswer | Outcome) -> int:
    claim = answer.meta["claim"] if isinstance(answer, Response) else answer.claim
    return int(claim.url_id)


def test_replay_when_pages_are_small_then_many_come_with_one_request(cache: Any) -> None:
    waiting = Waiting(range(1, 100))
    middleware = make(cache, waiting)

    response, further = ask(middleware)

    assert [number_of(each) for each in (response, *further)] == list(range(32))
    assert all(isinstance(each, FetchedAnswer) and each.body == b"<p>%d" % number_of(each) for each in further)
    cached = [each.cached for each in further[:2] if isinstance(each, FetchedAnswer)]
    assert [each.text for each in cached if each is not None] == ["text 1", "text 2"]
    assert middleware.pages == 32


def test_replay_when_pages_are_large_then_few_come_with_one_request(cache: Any) -> None:
    waiting = Waiting(range(1, 100))
    middleware = make(cache, waiting, changed={n: answer_of(n, cache[1][n], size=400_000) for n in range(100)})

    assert [number_of(each) for each in ask(middleware)[1]] == [1, 2]


def test_replay_when_a_page_came_by_redirects_then_it_has_a_request_of_its_own(cache: Any) -> None:
    hops = answer_of(3, cache[1][3], redirects='[{"url": "http://a.test/3", "code": 301}]')
    waiting = Waiting(range(1, 100))
    middleware = make(cache, waiting, changed={3: hops})

    assert [number_of(each) for each in ask(middleware)[1]] == [1, 2]
    assert waiting.given_back == [3]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"redirects": '[{"url": "http://a.test/3", "code": 301}]'}, 301),
        # The row was refused since: it says nothing of its redirects.
        ({"redirected": True}, 302),
    ],
)
def test_replay_when_a_page_came_from_another_url_then_a_redirect_leads_there(
    led: Any, said: dict[str, Any], status: int
) -> None:
    waiting = Waiting([4])
    middleware = make(led, waiting, changed={3: answer_of(3, led[1][3])._replace(**said)})

    response, further = ask(middleware, 3)

    assert (response.status, response.headers["Location"], further) == (status, b"http://a.test/target", [])


def test_replay_when_nothing_but_its_record_says_that_a_page_was_redirected_then_it_is_given_up(led: Any) -> None:
    middleware = make(led, Waiting([]))

    with pytest.raises(VisitEnded):
        ask(middleware, 3)

    assert middleware.given_up == {3}


def test_replay_when_a_record_is_damaged_then_only_its_row_is_given_up(cache: Any) -> None:
    damaged = cache[1][2]._replace(offset=cache[1][2].offset + 1)
    waiting = Waiting(range(1, 5))
    middleware = make(cache, waiting, changed={2: answer_of(2, damaged)})

    _, further = ask(middleware)

    assert [(number_of(each), isinstance(each, Outcome) and each.released) for each in further] == [
        (1, False), (2, True), (3, False), (4, False),
    ]  # fmt: skip
    assert middleware.given_up == {2}


def test_replay_when_the_first_record_is_damaged_then_the_others_wait_again(cache: Any) -> None:
    damaged = cache[1][0]._replace(offset=cache[1][0].offset + 1)
    waiting = Waiting(range(1, 4))
    middleware = make(cache, waiting, changed={0: answer_of(0, damaged)})

    with pytest.raises(VisitEnded) as ended:
        ask(middleware)

    assert ended.value.outcome.released
    assert [claim.url_id for claim in waiting.claims] == [1, 2, 3]
    assert middleware.given_up == {0}


@pytest.mark.parametrize(
    ("component", "plugins", "further"),
    [
        ("searchcrawl.http.visit_end.OutcomeMiddleware", False, 31),
        ("scrapy.downloadermiddlewares.retry.RetryMiddleware", False, 0),
        ("searchcrawl.http.visit_end.OutcomeMiddleware", True, 0),
    ],
)
def test_replay_when_a_user_has_middlewares_then_each_page_has_a_request_of_its_own(
    cache: Any, component: str, plugins: bool, further: int
) -> None:
    stages, waiting = Stages(), Waiting(range(1, 100))
    stages.add(make(cache, waiting))
    stages.add(SimpleNamespace(source=SimpleNamespace(has_document_plugins=plugins)), Run)
    settings = BaseSettings({"DOWNLOADER_MIDDLEWARES": {component: 5}, "SPIDER_MIDDLEWARES": {"a.user.Took": None}})
    crawler = SimpleNamespace(spider=SimpleNamespace(stages=stages), settings=settings)

    middleware = ReplayMiddleware.from_crawler(cast(Crawler, crawler))

    assert len(ask(middleware)[1]) == further


def test_replay_when_the_disk_fails_then_the_others_wait_again(cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting(range(1, 4))
    middleware = make(cache, waiting)
    monkeypatch.setattr(cache[0], "read_page", lambda place, *, url: (_ for _ in ()).throw(CacheError(f"{url}: gone")))

    with pytest.raises(CacheError):
        ask(middleware)

    assert [claim.url_id for claim in waiting.claims] == [1, 2, 3]
