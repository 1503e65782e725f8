"""Cookies in the words of Playwright, and as the crawl keeps them (L13)."""

from __future__ import annotations

from typing import Any

from playwright.async_api import BrowserContext

from searchcrawl.render.login_steps import BrowserCookie


async def list_cookies(context: BrowserContext, *, https: bool = False) -> list[BrowserCookie]:
    """The cookies that a context has; with ``https`` each goes over https only. Raises Playwright's Error."""
    return [
        BrowserCookie(
            name=cookie["name"],
            value=cookie["value"],
            domain=cookie["domain"],
            path=cookie["path"],
            expires=None if cookie["expires"] < 0 else cookie["expires"],
            https=cookie["secure"] or https,
            http_only=cookie["httpOnly"],
            same_site=cookie["sameSite"],
        )
        for cookie in await context.cookies()
    ]


def describe_cookie(cookie: BrowserCookie) -> dict[str, Any]:
    """A cookie as Playwright sets it."""
    described: dict[str, Any] = {
        "name": cookie.name,
        "value": cookie.value,
        "domain": cookie.domain,
        "path": cookie.path,
        "secure": cookie.https,
        "httpOnly": cookie.http_only,
    }
    if cookie.expires is not None:
        described["expires"] = cookie.expires
    if cookie.same_site:
        described["sameSite"] = cookie.same_site
    return described
