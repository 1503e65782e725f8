"""A robots.txt that is hostile itself: what cannot be read forbids, and nothing hangs or swells (X-R1-R6, X-B2, X-B4)."""

from __future__ import annotations

import gzip
import zlib
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from tests.hostile_server import PAGE, HostileServer, coded, head, whole
from tests.integration.support_fetch import crawl

RULES = b"User-agent: *\nDisallow: /ok\n"
#: the answer for /robots.txt, and the code of a page that its rules forbid: that of the fault where it has one
ANSWERS: dict[str, tuple[bytes, int]] = {
    "plain": (whole(RULES), 951),
    "gzip": (coded("gzip", gzip.compress(RULES)), 951),
    "gzip-twice": (coded("gzip, gzip", gzip.compress(gzip.compress(RULES))), 951),
    "gzip-thrice": (coded("gzip, gzip, gzip", gzip.compress(gzip.compress(gzip.compress(RULES)))), 958),
    "gzip-none": (coded("gzip", RULES), 958),
    "gzip-bomb": (coded("gzip", gzip.compress(RULES + bytes(60_000_000))), 951),
    "gzip-members": (coded("gzip", gzip.compress(b"", mtime=0) * 20_000), 958),
    "deflate": (coded("deflate", zlib.compress(RULES)), 951),
    "deflate-empty": (coded("deflate", b""), 200),
    "unknown-coding": (coded("rot13", RULES), 958),
    "cut": (head("200 OK", "Content-Length: 5000") + RULES, 958),
    "no-http": (RULES, 1006),
    "long-header": (head("200 OK", "X-Long: " + "x" * 1_000_000, "Content-Length: 0"), 1006),
    "many-headers": (head("200 OK", *(f"X-{number}: y" for number in range(100_000)), "Content-Length: 0"), 1006),
    "transfer": (head("200 OK", "Transfer-Encoding: gzip, chunked") + RULES, 1006),
    "endless-line": (whole(RULES + b"Disallow: /" + b"x" * 5_000_000), 951),
    "controls": (whole(b"\0\x1b[31m\xff\xfe\n" + RULES), 951),
    "html": (whole(PAGE), 200),
    "empty": (whole(b""), 200),
}


SLOW: dict[str, str] = {name: f"/{name}" for name in ("drip-body", "drip-header", "silent", "endless-1xx")}


class Crawled(NamedTuple):
    """The visits by the name of their host's robots.txt, what each host was asked, and the rest of the answer."""

    visits: dict[str, dict[str, Any]]
    requests: dict[str, int]
    answer: dict[str, Any]


@pytest.fixture(scope="module")
def crawled() -> Crawled:
    """One crawl of as many hosts as there are faults: a process for each would take minutes."""
    with ExitStack() as stack:
        servers = {name: stack.enter_context(HostileServer()) for name in (*ANSWERS, *SLOW)}
        for name, (answer, _) in ANSWERS.items():
            servers[name].answers["/robots.txt"] = answer
        for name, path in SLOW.items():
            servers[name].act_as("/robots.txt", path)
        found = crawl([server.url + "/ok" for server in servers.values()])
    names = {server.url + "/ok": name for name, server in servers.items()}
    visits = {names[visit["wanted"]]: visit for visit in found["visits"]}
    return Crawled(visits, {name: len(server.requests) for name, server in servers.items()}, found)


@pytest.mark.parametrize("name", ANSWERS)
def test_robots_file_when_hostile_then_what_it_forbids_stays_forbidden(crawled: Crawled, name: str) -> None:
    _, code = ANSWERS[name]

    assert crawled.visits[name]["code"] == code
    assert crawled.requests[name] == (2 if code == 200 else 1)


@pytest.mark.parametrize("name", SLOW)
def test_r4_robots_file_when_slow_then_the_deadline_is_for_the_whole_of_it(crawled: Crawled, name: str) -> None:
    visit = crawled.visits[name]

    assert (visit["code"], visit["transient"]) == (902, True)
    assert crawled.requests[name] == 1


def test_robots_files_when_hostile_then_memory_is_bounded_and_the_log_is_silent(crawled: Crawled) -> None:
    assert crawled.answer["grown_mb"] < 85
    assert crawled.answer["log"] == ""
