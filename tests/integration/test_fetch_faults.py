"""Servers that answer wrong: each fault a code and a line, and nothing else suffers (R1-R8, D6, D11)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from searchcrawl import __version__
from tests.hostile_server import PAGE, HostileServer, closed_port

ROOT = Path(__file__).resolve().parents[2]
#: path → code and whether it is tried again; None: the page arrives whole.
EXPECTED: dict[str, tuple[int, bool] | None] = {
    "/ok": None,
    "/gzip": None,
    "/gzip-twice": None,
    "/deflate-raw": None,
    "/no-length": None,
    "/found": None,
    "/location-twice": None,
    "/gzip-thrice": (958, False),
    "/gzip-cut": (958, True),
    "/gzip-crc": (958, True),
    "/gzip-bad": (958, True),
    "/gzip-bomb": (960, False),
    "/unknown-coding": (958, False),
    "/cut-length": (958, True),
    "/chunk-cut": (958, True),
    "/cut-reset": (958, True),
    "/announced": (960, False),
    "/endless-body": (960, False),
    "/closed": (905, True),
    "/reset": (905, True),
    "/silent": (902, True),
    "/drip": (902, True),
    "/location-none": (1003, False),
    "/location-blank": (1003, False),
    "/location-two": (1003, False),
    "/location-bad": (1003, False),
    "/location-file": (1003, False),
    "/loop": (963, False),
    "/loop-a": (963, False),
    "/chain-0": (963, False),
    "/moved": (954, False),
    "/moved-outside": (954, False),
    "/status-204": (204, False),
    "/status-206": (206, False),
    "/status-304": (304, True),
    "/status-404": (404, False),
    "/status-404-gzip-cut": (404, False),
    "/status-429": (429, True),
    "/status-503": (503, True),
    "/status-100-digits": (1006, True),
    "/status-2": (1006, True),
    "/status-negative": (1006, True),
    "/two-lengths": (1006, True),
    "/negative-length": (1006, True),
}
#: What Scrapy's own handler does not see, or says otherwise (findings D6, D11, R7).
EXPECTED_OF_AIOHTTP: dict[str, tuple[int, bool] | None] = {
    "/no-length-reset": (958, True),
    "/endless-headers": (1006, True),
    "/header-too-long": (1006, True),
    "/headers-too-large": (1006, True),
    "/endless-404": (404, False),
    "/status-101": (1006, True),
    "/no-http": (1006, True),
}


def crawl(handler: str, urls: list[str], **claim: str) -> dict[str, Any]:
    job = {
        "claim": claim,
        "handler": handler,
        "urls": urls,
        "resolve_first": True,
        "scope": {"include_hosts": ["127.0.0.1", "nowhere.test"]},
        "fetch": {
            "private_networks": ["127.0.0.1/32"],
            "timeout_seconds": 2,
            "max_bytes": 2_000_000,
            "max_redirects": 5,
        },
    }
    done = subprocess.run(
        [sys.executable, "tests/fetch_crawl.py"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        timeout=120,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer | {"log": done.stderr}


@pytest.fixture(scope="module")
def crawled() -> dict[str, dict[str, Any]]:
    """By handler: the whole answer, its visits by path, or by URL where the host is another."""
    answers = {}
    for handler, paths in (("aiohttp", [*EXPECTED, *EXPECTED_OF_AIOHTTP]), ("http11", [*EXPECTED])):
        with HostileServer() as server, closed_port() as port:
            urls = [server.url + path for path in paths]
            answer = crawl(handler, [*urls, f"http://127.0.0.1:{port}/closed-port", "http://nowhere.test/"])
        answer["visits"] = {visit["wanted"].removeprefix(server.url): visit for visit in answer["visits"]}
        answers[handler] = answer
    return answers


@pytest.mark.parametrize(
    ("handler", "path"),
    [
        *(("aiohttp", path) for path in [*EXPECTED, *EXPECTED_OF_AIOHTTP]),
        *(("http11", path) for path in EXPECTED),
    ],
)
def test_server_when_it_answers_wrong_then_row_has_a_code_and_a_line(
    crawled: dict[str, dict[str, Any]], handler: str, path: str
) -> None:
    visit = crawled[handler]["visits"][path]
    expected = (EXPECTED | EXPECTED_OF_AIOHTTP)[path]

    if expected is None:
        assert (visit["code"], visit["bytes"]) == (200, len(PAGE))
    else:
        assert (visit["code"], visit["transient"]) == expected
        assert path.startswith("/moved") or "http://127.0.0.1:" in visit["error"]


@pytest.mark.parametrize("handler", ["aiohttp", "http11"])
def test_host_when_it_cannot_be_reached_then_code_is_the_root_cause(
    crawled: dict[str, dict[str, Any]], handler: str
) -> None:
    visits = crawled[handler]["visits"]

    codes = {url.rpartition("/")[2]: visit["code"] for url, visit in visits.items() if url.startswith("http:")}

    assert codes == {"closed-port": 906, "": 907}


def test_crawl_when_all_answers_are_wrong_then_memory_is_bounded_and_log_is_silent(
    crawled: dict[str, dict[str, Any]],
) -> None:
    answer = crawled["aiohttp"]

    assert answer["peak_rss_mb"] < 200
    assert answer["log"] == ""


def test_redirect_when_followed_then_trail_and_links_are_told(crawled: dict[str, dict[str, Any]]) -> None:
    visits = crawled["aiohttp"]["visits"]

    assert [hop[1] for hop in visits["/chain-0"]["redirects"]] == [302] * 5
    assert visits["/moved"]["links"][0][0].endswith("/ok")
    assert visits["/moved-outside"]["rule"] == "scope.include_hosts: no include matches"
    assert visits["/moved-outside"]["links"] == []


def test_requests_when_sent_then_say_who_asks_and_nothing_of_us_else() -> None:
    with HostileServer() as server:
        crawl("aiohttp", [server.url + "/ok"])

    robots, page = server.requests

    assert robots.startswith("GET /robots.txt HTTP/1.1\r\n")
    assert page.startswith("GET /ok HTTP/1.1\r\n")
    assert {line.partition(":")[0] for line in page.splitlines()[1:] if line} == {
        "Host",
        "User-Agent",
        "Accept",
        "Accept-Encoding",
    }
    assert f"User-Agent: searchcrawl/{__version__} (+crawl@example.test)\r\n" in page


@pytest.mark.parametrize("handler", ["aiohttp", "http11"])
@pytest.mark.parametrize("target", ["/a%2Fb?x=%7e|[]", "/%E3%81%82?q=a+b&c=%20", "/a//b/;p?x"])
def test_url_when_requested_then_server_gets_its_identity(handler: str, target: str) -> None:
    with HostileServer() as server:
        crawl(handler, [server.url + target])

    assert server.requests[-1].split(" ")[1] == target


@pytest.mark.parametrize("handler", ["aiohttp", "http11"])
def test_page_when_unchanged_then_304_settles_it_and_says_nothing(handler: str) -> None:
    with HostileServer() as server:
        visit = crawl(handler, [server.url + "/status-304"], etag='"5"')["visits"][0]

    assert 'If-None-Match: "5"' in server.requests[-1]
    assert (visit["code"], visit["transient"], visit["error"], visit["etag"]) == (304, False, None, '"6"')


def test_redirect_when_followed_then_validators_stay_behind() -> None:
    with HostileServer() as server:
        visit = crawl("aiohttp", [server.url + "/found"], etag='"5"')["visits"][0]

    first, second = server.requests[1:]

    assert visit["code"] == 200
    assert "If-None-Match" in first
    assert "If-None-Match" not in second
