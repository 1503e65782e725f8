"""Servers that answer wrong: each fault a code and a line, and nothing else suffers (X-R1-R8, X-D6, X-D11)."""

from __future__ import annotations

from typing import Any, Final

import pytest

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
#: What each row of the list says.
SAYS: Final = {
    "r1": "a body that is a bomb in any coding is too large",
    "r2": "of nested codings two are undone and no more",
    "r3": "an endless answer is given up at its size or deadline",
    "r4": "the deadline is for the whole answer",
    "r5": "a body that is cut or has broken chunks is no page",
    "r6": "a body of which only its coding tells that it is cut is no page",
    "r7": "a header that is no HTTP ends the visit with one error",
    "r8": "a redirect that leads nowhere has a code that says so",
    "r16": "a status that is no page has no body",
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


@pytest.mark.parametrize("row", SAYS, ids=[f"{row} {says}" for row, says in SAYS.items()])
def test_answer_when_it_is_wrong_then_it_has_its_code_and_one_line_that_names_the_url(
    crawled: dict[str, Any], row: str
) -> None:
    found: dict[str, Expected] = {}
    for path in EXPECTED[row]:
        visit = crawled["visits"][path]
        whole = visit["code"] == 200 and visit.get("bytes") == len(PAGE)
        code = 958 if path in LATE and visit["code"] == 1006 else visit["code"]
        found[path] = None if whole else (code, visit.get("transient", False))
        if path in ENDLESS and code == 902:
            found[path] = EXPECTED[row][path]
        assert whole or visit["code"] == 954 or "http://127.0.0.1:" in visit["error"], visit

    assert found == EXPECTED[row]


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
