"""The replies of curl's own tests, through the real handler: each ends in a status or a code (X-R7)."""

from __future__ import annotations

import base64
from typing import Final

from tests.conformance.corpus import cases
from tests.hostile_server import HostileServer
from tests.integration.support_fetch import crawl

#: Redirects to where the replies' own tests had servers, and the codes of ours for what cannot be had.
OUR_CODES: Final = frozenset({902, 905, 906, 907, 951, 954, 955, 958, 960, 962, 963, 1003, 1004, 1006})


def test_r7_replies_of_curl_when_asked_for_then_none_hangs_and_each_has_a_code() -> None:
    found = cases("http_replies_curl.json")
    with HostileServer() as server:
        paths = {f"/case-{case['test']}": base64.b64decode(case["reply_b64"]) for case in found}
        server.answers.update(paths)

        answer = crawl([server.url + path for path in paths], timeout_seconds=3)

    visits = {visit["wanted"].removeprefix(server.url): visit for visit in answer["visits"]}
    assert visits.keys() == paths.keys()
    codes = {path: visit["code"] for path, visit in visits.items()}
    assert {path: code for path, code in codes.items() if code is None} == {}
    assert {code for code in codes.values() if not 100 <= code <= 599} <= OUR_CODES
    assert answer["grown_mb"] < 60


def test_r7_replies_of_curl_when_curl_reads_them_then_so_do_we() -> None:
    found = cases("http_replies_curl.json")
    plain = [case for case in found if case["plain"] and case.get("expected_status") in (200, 404)]
    with HostileServer() as server:
        paths = {f"/case-{case['test']}": base64.b64decode(case["reply_b64"]) for case in plain}
        server.answers.update(paths)

        answer = crawl([server.url + path for path in paths], timeout_seconds=3)

    codes = {visit["wanted"].removeprefix(server.url): visit["code"] for visit in answer["visits"]}
    others = {
        case["test"]: codes[f"/case-{case['test']}"]
        for case in plain
        if codes[f"/case-{case['test']}"] != case["expected_status"]
    }
    assert others == {}
