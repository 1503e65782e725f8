"""What a browser does to log in, and what it has afterwards: cookies in the words of Playwright and of the crawl (C10, L13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from searchcrawl.sources.fetch_tables import LoginStep

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext


@dataclass(frozen=True, slots=True)
class LoginSteps:
    """The steps of a login, which begin at the page of ``url``.

    Where the last page does not show the text ``check``, the page of ``start`` is looked at as well.
    """

    url: str
    steps: Sequence[LoginStep]
    check: str | None = None
    start: str | None = None

    def hide(self, message: str) -> str:
        """A message about what a page did, without words that have what was typed: a URL may have it."""
        typed = [step.value.casefold() for step in self.steps if step.value]
        words = message.split(" ")
        return " ".join("***" if any(one in unquote_plus(word).casefold() for one in typed) else word for word in words)


@dataclass(frozen=True, slots=True)
class BrowserCookie:
    """A cookie that a browser has; ``domain`` with a dot in front is that of all hosts below; ``expires`` in Unix seconds.

    ``same_site`` is ``Strict``, ``Lax``, ``None``, or empty where its server named none.
    """

    name: str
    value: str = field(repr=False)
    domain: str
    path: str
    expires: float | None
    https: bool
    http_only: bool
    same_site: str = ""


@dataclass(frozen=True, slots=True)
class LoginEnd:
    """What the steps have led to: the status of the last page, what it shows, and the cookies.

    ``asks_again`` says that the page shows a password field; ``form_url`` and ``password_field`` are of the first one that
    was filled, None where none was. ``shows_check`` says whether the page shows the text that was asked for. ``refused``
    tells, for a message, what the wall refused to the pages; empty where it was nothing.
    """

    status: int
    asks_again: bool
    shows_check: bool
    refused: str
    form_url: str | None
    password_field: str | None
    cookies: Sequence[BrowserCookie] = field(repr=False)


class StepFailed(Exception):
    """A step could not be done; ``status`` is that of the page. The message has no secret."""

    def __init__(self, message: str, status: int, more: str) -> None:
        super().__init__(f"{message} (the page answered {status}{more})")
        self.status = status


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
