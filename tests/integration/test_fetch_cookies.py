"""Servers that set a cookie and lead back to see whether it is kept (C6, C10, X-R8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.hostile_server import PAGE, HostileServer, head, redirect, whole
from tests.integration.support_fetch import crawl

LOGIN = {"type": "cookies", "fields": {"session": "abc"}}


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
    assert visit(path, login=LOGIN) == (200, len(PAGE), requests)


@pytest.mark.parametrize(("path", "login"), [("/self", None), ("/page", None), ("/loop", LOGIN)])
def test_r8_page_when_it_always_leads_back_then_is_a_loop(path: str, login: dict[str, Any] | None) -> None:
    assert visit(path, login=login)[:2] == (963, None)
