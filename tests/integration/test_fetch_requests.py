"""What is requested: URLs, headers in their bytes, validators and cookies (C6, C10, L5, X-R8)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from searchcrawl import __version__
from tests.hostile_server import PAGE, HostileServer, head, redirect, whole
from tests.integration.support_fetch import crawl

DIGEST = {"type": "digest", "username": "Jörg", "password": "Käse"}
COOKIES = {"type": "cookies", "fields": {"session": "abc"}}


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


@pytest.mark.parametrize("realm", ["Geschützt".encode("latin-1"), "Geschützt €".encode()], ids=["latin", "utf"])
def test_digest_when_realm_is_no_ascii_then_answer_is_as_a_browser_gives_it(realm: bytes) -> None:
    challenge = f'WWW-Authenticate: Digest realm="{realm.decode("latin-1")}", nonce="n"'
    with HostileServer() as server:
        server.answers["/inner"] = head("401 Unauthorized", challenge, "Content-Length: 0")

        crawl([f"{server.url}/inner"], login=DIGEST)

        sent = [request.encode("latin-1") for request in server.requests if "Authorization" in request]
    found = re.search(rb'response="([0-9a-f]+)"', sent[0])
    assert found is not None
    secret = hashlib.md5("Jörg:".encode() + realm + ":Käse".encode()).hexdigest()
    asked = hashlib.md5(b"GET:/inner").hexdigest()
    assert found[1].decode() == hashlib.md5(f"{secret}:n:{asked}".encode()).hexdigest()
    assert b'realm="' + realm + b'"' in sent[0]
    assert 'username="Jörg"'.encode() in sent[0]


def lead_back(location: str, *, cookie: bool = True) -> Callable[[str], bytes]:
    """A page for a request that has the cookie, else a redirect that sets it."""

    def choose(request: str) -> bytes:
        if "seen=1" in request:
            return whole()
        cookies = ["Set-Cookie: seen=1; Path=/"] if cookie else []
        return head("302 Found", f"Location: {location}", *cookies, "Content-Length: 0")

    return choose


def visit(path: str, *, login: dict[str, Any] | None) -> tuple[int, int | None, int]:
    """Code and size of what a visit gets, and how many requests it took."""
    with HostileServer() as server:
        server.choices = {
            "/self": lead_back("/self"),
            "/page": lead_back("/check"),
            "/loop": lead_back("/loop", cookie=False),
        }
        server.answers["/check"] = redirect("302 Found", "/page")

        answer = crawl([server.url + path], login=login)

        asked = [request for request in server.requests if " /robots.txt " not in request]
    [found] = answer["visits"]
    return found["code"], found.get("bytes"), len(asked)


@pytest.mark.parametrize(("path", "requests"), [("/self", 2), ("/page", 3)])
def test_r8_page_when_it_leads_back_once_it_has_set_a_cookie_then_is_had_where_cookies_are_kept(
    path: str, requests: int
) -> None:
    assert visit(path, login=COOKIES) == (200, len(PAGE), requests)


@pytest.mark.parametrize(("path", "login"), [("/self", None), ("/page", None), ("/loop", COOKIES)])
def test_r8_page_when_it_always_leads_back_then_is_a_loop(path: str, login: dict[str, Any] | None) -> None:
    assert visit(path, login=login)[:2] == (963, None)
