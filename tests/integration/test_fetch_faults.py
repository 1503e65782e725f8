"""Servers that answer wrong: each fault a code and a line, and nothing else suffers (X-R1-R8, X-D6, X-D11)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from searchcrawl import __version__
from tests.hostile_answers import ROWS, Expected
from tests.hostile_server import PAGE, HostileServer, closed_port
from tests.integration.support_fetch import crawl

#: Faults that need time, by row: code, and whether it is tried again.
SLOW: Final[dict[str, dict[str, Expected]]] = {
    "r3": {
        "/endless-headers": (1006, True),
        "/endless-line": (1006, True),
        "/endless-1xx": (902, True),
        "/endless-body": (960, False),
        "/endless-no-length": (960, False),
        "/endless-404": (404, False),
        "/endless-chunk-name": (902, True),
        "/endless-trailer": (958, True),
    },
    "r4": {
        "/silent": (902, True),
        "/drip-header": (902, True),
        "/drip-line": (902, True),
        "/drip-body": (902, True),
        "/drip-404": (404, False),
    },
    "r5": {"/reset": (905, True), "/reset-length": (958, True)},
    "r6": {"/reset-no-length": (958, True)},
}
#: Broken behind the last chunk: the code depends on whether the header came in the same piece.
LATE: Final = frozenset({"/r3-trailers", "/endless-trailer"})
#: On a slow machine the deadline comes before the limit.
ENDLESS: Final = frozenset({path for path in SLOW["r3"] if path != "/endless-404"})
EXPECTED: Final[dict[str, dict[str, Expected]]] = {
    row: {path: expected for path, (_, expected) in answers.items()} | SLOW.get(row, {})
    for row, answers in ({"r4": {}} | ROWS).items()
}
#: A deadline that a busy machine does not miss either.
_UNHURRIED: Final = 60
MOVED: Final[dict[str, Expected]] = {"/chain-0": (963, False), "/moved": (954, False), "/moved-outside": (954, False)}


@pytest.fixture(scope="module")
def crawled() -> dict[str, Any]:
    """The whole answer; its visits by path, or by URL where the host is another."""
    with HostileServer() as server, closed_port() as port:
        for row in ROWS.values():
            server.answers.update({path: answer for path, (answer, _) in row.items()})
        paths = [*MOVED, *(path for row in EXPECTED.values() for path in row)]
        urls = [server.url + path for path in paths]
        answer = crawl([*urls, f"http://127.0.0.1:{port}/closed-port", "http://nowhere.test/"])
        answer["visits"] = by_path(server, answer)
        # With all at once, a busy machine misses the deadline of answers that have nothing to do with it, and uses
        # connections that the server has just closed.
        codes = {path: answer["visits"][path]["code"] for path in paths}
        late = [path for path, code in codes.items() if code in {902, 905} and not is_meant(path, code)]
        if late:
            again = crawl([server.url + path for path in late], timeout_seconds=_UNHURRIED)
            answer["visits"] |= by_path(server, again)
    return answer


def by_path(server: HostileServer, answer: dict[str, Any]) -> dict[str, Any]:
    """The visits of a crawl, by path."""
    return {visit["wanted"].removeprefix(server.url): visit for visit in answer["visits"]}


def is_meant(path: str, code: int) -> bool:
    """Whether an answer is one that should have this code."""
    wanted = [row.get(path) for row in EXPECTED.values()]
    return any(expected is not None and expected[0] == code for expected in wanted)


def assert_row(answer: dict[str, Any], row: str) -> None:
    """Each fault of a row has its code and one line that names the URL, and a whole page its bytes."""
    found: dict[str, Expected] = {}
    for path in EXPECTED[row]:
        visit = answer["visits"][path]
        whole = visit["code"] == 200 and visit.get("bytes") == len(PAGE)
        code = 958 if path in LATE and visit["code"] == 1006 else visit["code"]
        found[path] = None if whole else (code, visit.get("transient", False))
        if path in ENDLESS and code == 902:
            found[path] = EXPECTED[row][path]
        assert whole or visit["code"] == 954 or "http://127.0.0.1:" in visit["error"], visit

    assert found == EXPECTED[row]


def test_r1_body_when_it_is_a_bomb_in_any_coding_then_is_too_large(crawled: dict[str, Any]) -> None:
    assert_row(crawled, "r1")


def test_r2_codings_when_nested_then_two_are_undone_and_no_more(crawled: dict[str, Any]) -> None:
    assert_row(crawled, "r2")


def test_r3_answer_when_endless_then_is_given_up_at_its_size_or_deadline(crawled: dict[str, Any]) -> None:
    assert_row(crawled, "r3")


def test_r4_server_when_slow_then_deadline_is_for_the_whole_answer(crawled: dict[str, Any]) -> None:
    assert_row(crawled, "r4")


def test_r5_body_when_cut_or_its_chunks_are_broken_then_is_no_page(crawled: dict[str, Any]) -> None:
    assert_row(crawled, "r5")


def test_r6_body_when_only_its_coding_tells_that_it_is_cut_then_is_no_page(crawled: dict[str, Any]) -> None:
    assert_row(crawled, "r6")


def test_r7_header_when_it_is_no_http_then_visit_ends_with_one_error(crawled: dict[str, Any]) -> None:
    assert_row(crawled, "r7")


def test_r8_redirect_when_it_leads_nowhere_then_a_code_says_so(crawled: dict[str, Any]) -> None:
    assert_row(crawled, "r8")


def test_r16_status_when_it_is_no_page_then_its_body_is_none(crawled: dict[str, Any]) -> None:
    assert_row(crawled, "r16")


def test_host_when_it_cannot_be_reached_then_code_is_the_root_cause(crawled: dict[str, Any]) -> None:
    visits = crawled["visits"]

    codes = {url.rpartition("/")[2]: visit["code"] for url, visit in visits.items() if url.startswith("http:")}

    assert codes == {"closed-port": 906, "": 907}


def test_crawl_when_all_answers_are_wrong_then_memory_is_bounded_and_log_is_silent(
    crawled: dict[str, Any],
) -> None:
    assert crawled["grown_mb"] < 60
    assert crawled["log"] == ""


def test_redirect_when_followed_then_trail_and_links_are_told(crawled: dict[str, Any]) -> None:
    visits = crawled["visits"]

    chain = visits["/chain-0"]
    assert (chain["code"], [hop[1] for hop in chain["redirects"]]) == (963, [302] * 5)
    assert visits["/moved"]["links"][0][0].endswith("/ok")
    assert visits["/moved-outside"]["rule"] == "scope.include_hosts: no include matches"
    assert visits["/moved-outside"]["links"] == []


def test_requests_when_sent_then_say_who_asks_and_nothing_of_us_else() -> None:
    with HostileServer() as server:
        crawl([server.url + "/ok"])

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


@pytest.mark.parametrize("target", ["/a%2Fb?x=%7e|[]", "/%E3%81%82?q=a+b&c=%20", "/a//b/;p?x"])
def test_url_when_requested_then_server_gets_its_identity(target: str) -> None:
    with HostileServer() as server:
        crawl([server.url + target])

    assert server.requests[-1].split(" ")[1] == target


def test_page_when_unchanged_then_304_settles_it_and_says_nothing() -> None:
    with HostileServer() as server:
        visit = crawl([server.url + "/status-304"], claim={"etag": '"5"'})["visits"][0]

    assert 'If-None-Match: "5"' in server.requests[-1]
    assert (visit["code"], visit["transient"], visit["error"], visit["etag"]) == (304, False, None, '"6"')


def test_redirect_when_followed_then_validators_stay_behind() -> None:
    with HostileServer() as server:
        visit = crawl([server.url + "/found"], claim={"etag": '"5"'})["visits"][0]

    first, second = server.requests[1:]

    assert visit["code"] == 200
    assert "If-None-Match" in first
    assert "If-None-Match" not in second
