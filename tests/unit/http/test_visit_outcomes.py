"""What becomes of answers: statuses, failures, codings; and what is sent along (C7, X-D6, L6, X-N7)."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable

import pytest
from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import HtmlResponse, Response

from searchcrawl.http.decompression_middleware import DecompressionMiddleware
from searchcrawl.http.headers_middleware import HeadersMiddleware
from searchcrawl.http.visit_end import (
    BodyTooLarge,
    BrokenHeader,
    CertificateRefused,
    ForbiddenAddress,
    OutcomeMiddleware,
    VisitEnded,
)
from searchcrawl.items import Hop, Outcome
from searchcrawl.rules.redirects import OwnOrigins
from tests.fetch_requests import TRAIL, URL, answer, claim, end_of, robots_request, visit

OUTCOME = OutcomeMiddleware()
DECOMPRESSION = DecompressionMiddleware(max_bytes=100_000)
HEADERS = HeadersMiddleware(
    user_agent="searchcrawl (+mailto:a@b.test)",
    headers={"x-api-key": "secret"},
    own_origins=OwnOrigins(
        ["http://site.test/start", "https://secure.test:444/"], ["https://further.test", "http://plain.test"]
    ),
)


# Outcomes


@pytest.mark.parametrize("status", [200, 203, 304])
def test_outcome_when_status_is_a_page_or_unchanged_then_goes_on(status: int) -> None:
    request = visit()
    response = answer(request, status)

    assert OUTCOME.process_response(request, response) is response


@pytest.mark.parametrize(
    ("status", "transient"),
    [
        *((status, False) for status in (204, 206, 300, 400, 401, 404, 410, 418)),
        *((status, True) for status in (408, 425, 429, 500, 503, 599)),
    ],
)
def test_outcome_when_status_is_no_page_then_visit_ends_with_it(status: int, transient: bool) -> None:
    request = visit(redirects=TRAIL)

    outcome = end_of(OUTCOME.process_response, request, answer(request, status))

    assert (outcome.code, outcome.transient, outcome.redirects) == (status, transient, TRAIL)
    assert outcome.error is not None
    assert outcome.error.endswith(URL)


def test_outcome_when_server_says_when_then_pause_is_handed_on() -> None:
    outcome = end_of(OUTCOME.process_response, visit(), answer(visit(), 503, Retry_After="120"))

    assert outcome.retry_after_seconds == 120.0


@pytest.mark.parametrize(
    ("failure", "code", "transient"),
    [
        (ForbiddenAddress("127.0.0.1"), 907, False),
        (CannotResolveHostError("no"), 907, True),
        (DownloadTimeoutError("30"), 902, True),
        (DownloadConnectionRefusedError("no"), 906, True),
        (CertificateRefused("expired"), 962, True),
        (BrokenHeader("too long"), 1006, True),
        (ResponseDataLossError("cut"), 958, True),
        (BodyTooLarge("big"), 960, False),
        (DownloadCancelledError("big"), 960, False),
        (UnsupportedURLSchemeError("gopher"), 1004, False),
        (DownloadFailedError("reset"), 905, True),
        (OSError(24, "too many open files"), 905, True),
    ],
)
def test_outcome_when_download_fails_then_code_is_the_root_cause(
    failure: Exception, code: int, transient: bool
) -> None:
    outcome = end_of(OUTCOME.process_exception, visit(), failure)

    assert (outcome.code, outcome.transient) == (code, transient)
    assert outcome.error is not None
    assert str(failure)[:20] in outcome.error


def test_outcome_when_error_has_several_lines_then_row_has_one() -> None:
    outcome = end_of(OUTCOME.process_exception, visit(), DownloadFailedError("one\ntwo\x1b[31m\x00three"))

    assert outcome.error == "io error: one two [31m three: http://site.test/page"


@pytest.mark.parametrize("exception", [VisitEnded(Outcome(claim=claim(), code=955)), KeyError("a bug")])
def test_outcome_when_exception_is_no_failure_of_the_network_then_is_left_alone(exception: Exception) -> None:
    assert OUTCOME.process_exception(visit(), exception) is None


def test_outcome_when_request_is_of_robots_then_all_is_left_alone() -> None:
    response = answer(robots_request(), 503)

    assert OUTCOME.process_response(robots_request(), response) is response
    assert OUTCOME.process_exception(robots_request(), DownloadTimeoutError()) is None


# Decompression


def decoded(request: Request, response: Response) -> Response:
    result = DECOMPRESSION.process_response(request, response)
    if isinstance(result, Awaitable):

        async def wait() -> Response:
            return await result

        return asyncio.run(wait())
    return result


def test_decompression_when_coded_then_body_and_headers_are_those_of_the_page() -> None:
    headers = {"Content-Encoding": "gzip", "Content-Length": "30", "Content-Type": "text/html", "ETag": '"1"'}
    request = visit()
    response = HtmlResponse(URL, headers=headers, body=gzip.compress(b"page", mtime=0), request=request)

    page = decoded(request, response)

    assert page.body == b"page"
    assert isinstance(page, HtmlResponse)
    assert page.request is request
    assert dict(page.headers) == {b"Content-Type": [b"text/html"], b"Etag": [b'"1"']}


@pytest.mark.parametrize(
    ("body", "coding", "code", "transient"),
    [
        (gzip.compress(b"page", mtime=0)[:-3], "gzip", 958, True),
        (b"no gzip at all", "gzip", 958, True),
        (gzip.compress(b"page", mtime=0), "rot13", 958, False),
        (gzip.compress(bytes(200_000), mtime=0), "gzip", 960, False),
    ],
)
def test_decompression_when_body_is_bad_then_visit_ends(body: bytes, coding: str, code: int, transient: bool) -> None:
    request = visit()

    outcome = end_of(decoded, request, answer(request, body=body, Content_Encoding=coding))

    assert (outcome.code, outcome.transient) == (code, transient)


@pytest.mark.parametrize(
    ("request_", "status", "headers"),
    [
        (visit(), 200, {}),
        (robots_request(), 200, {"Content_Encoding": "gzip"}),
        *((visit(), status, {"Content_Encoding": "gzip"}) for status in (204, 302, 304, 404, 503)),
    ],
)
def test_decompression_when_answer_is_not_coded_or_no_page_then_it_is_left_alone(
    request_: Request, status: int, headers: dict[str, str]
) -> None:
    response = answer(request_, status, body=gzip.compress(b"page", mtime=0)[:-3], **headers)

    assert DECOMPRESSION.process_response(request_, response) is response


def test_decompression_when_page_is_asked_for_then_says_what_it_takes() -> None:
    request = visit()

    DECOMPRESSION.process_request(request)

    assert request.headers["Accept-Encoding"] == b"gzip, deflate, br, zstd"


# Headers


def test_headers_when_row_is_asked_for_then_own_headers_go_along() -> None:
    request = visit()

    HEADERS.process_request(request)

    assert request.headers["User-Agent"] == b"searchcrawl (+mailto:a@b.test)"
    assert request.headers["X-Api-Key"] == b"secret"


@pytest.mark.parametrize(
    ("url", "from_https", "sent"),
    [
        ("http://site.test/other", False, True),
        ("http://site.test:80/other", False, True),
        ("http://site.test/other", True, False),
        ("https://site.test/", False, False),
        ("http://site.test:8080/", False, False),
        ("http://www.site.test/", False, False),
        ("https://secure.test:444/", True, True),
        ("https://secure.test:444/", False, True),
        ("http://secure.test:444/", False, False),
        ("https://further.test/x", True, True),
        ("http://plain.test/", False, True),
        ("http://plain.test/", True, False),
    ],
)
@pytest.mark.parametrize("way", ["page", "redirect", "side"])
def test_headers_when_sent_then_own_ones_go_to_own_origins_and_never_down_to_http(
    way: str, url: str, from_https: bool, sent: bool
) -> None:
    if way == "page" and from_https:
        # Each page is asked for by itself, wherever its link was.
        return
    scheme = "https" if from_https else "http"
    hops = () if way == "page" else (Hop(f"{scheme}://site.test/", 302), Hop("http://other.test/", 302))
    request = visit(url, redirects=hops)
    if way == "side":
        request = Request(url, meta={"side_request": "sitemap", "from_https": from_https})

    HEADERS.process_request(request)

    assert (b"X-Api-Key" in request.headers) is sent
    assert b"User-Agent" in request.headers


def test_headers_when_all_start_urls_are_https_then_a_plain_origin_gets_none() -> None:
    origins = OwnOrigins(["https://site.test/"], ["http://plain.test", "https://further.test"])

    assert origins.refused == {"http://plain.test"}
    assert [origins.has(url) for url in ("https://site.test/x", "http://plain.test/", "https://further.test/")] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(("origin", "own"), [("http://site.test", True), ("http://other.test", False)])
def test_headers_when_robots_is_asked_for_then_own_ones_go_to_own_origins(origin: str, own: bool) -> None:
    request = Request(f"{origin}/robots.txt", meta={"side_request": "robots"})

    HEADERS.process_request(request)

    assert (b"X-Api-Key" in request.headers) is own


def test_headers_when_a_request_of_a_user_goes_out_then_only_the_common_ones_go_along() -> None:
    request = Request("http://site.test/x")

    HEADERS.process_request(request)

    assert set(request.headers) == {b"User-Agent", b"Accept"}
