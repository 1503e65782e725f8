"""Servers that fail by validators: the page is asked for without them (L5)."""

from __future__ import annotations

from tests.hostile_server import PAGE, HostileServer, whole
from tests.integration.support_fetch import crawl


def refuse_conditions(request: str) -> bytes:
    return whole(b"", "412 Precondition Failed") if "If-None-Match" in request else whole()


def test_l5_page_when_its_server_fails_by_a_validator_then_is_asked_for_without() -> None:
    with HostileServer() as server:
        server.choices["/page"] = refuse_conditions
        server.choices["/always"] = lambda _: whole(b"", "412 Precondition Failed")

        answer = crawl([f"{server.url}/page", f"{server.url}/always"], claim={"etag": '"1"'})

        asked = [request.split(" ")[1] for request in server.requests if " /robots.txt " not in request]
    codes = {visit["wanted"].rpartition("/")[2]: (visit["code"], visit.get("bytes")) for visit in answer["visits"]}
    assert codes == {"page": (200, len(PAGE)), "always": (412, None)}
    assert sorted(asked) == ["/always"] * 2 + ["/page"] * 2
