"""Sends what a browser asks for, as the crawl sends robots files and sitemaps: turns, addresses and logins are theirs (C2, C5, L7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from searchcrawl.codes import Code
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import Sent, SideAnswer, SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import BodyTooLarge
from searchcrawl.render.browser_request import BrowserRequest
from searchcrawl.render.budget import BudgetSpent, PageBudget
from searchcrawl.render.wall import Answer, FetchFailed

#: They are about one connection, the crawler's own, or ask for a part: the browser keeps nothing from page to page.
_KEPT_BACK: Final = frozenset({
    "accept-encoding", "connection", "content-length", "cookie", "host", "if-match", "if-modified-since", "if-none-match",
    "if-range", "if-unmodified-since", "keep-alive", "range", "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
})  # fmt: skip
#: Larger bodies are decoded in a thread.
_THREAD_FROM_BYTES: Final = 64 * 1024


def choose_headers(request: BrowserRequest) -> list[tuple[str, str]]:
    """The headers of a request that its server gets, but for cookies: what Chromium says, without what tells its build."""
    return [
        (name, value)
        for name, value in request.headers
        if name not in _KEPT_BACK and not name.startswith(("proxy-", "sec-ch-"))
    ]


async def send(
    side_requests: SideRequests,
    url: str,
    request: BrowserRequest,
    headers: Sequence[tuple[str, str]],
    budget: PageBudget,
    *,
    kind: str,
    max_bytes: int,
    anonymous: bool,
    check: Callable[[str], Awaitable[None]],
    is_public_only: Callable[[str], bool],
) -> Answer:
    """The answer of ``url``, an identity, whatever it is, also a redirect; raises FetchFailed and what ``check`` raises.

    ``kind`` names the requests to other stages; ``max_bytes`` is the limit on a body. An ``anonymous`` request has none of the
    crawl's credentials.
    """
    limit = min(max_bytes, budget.left)
    # One byte more tells a body that is too large from one that is as large as it may be.
    policy = SidePolicy(kind=kind, max_bytes=limit + 1, followed=frozenset())
    sent = Sent(method=request.method, body=request.body, anonymous=anonymous, count_bytes=_build_counter(budget))
    try:
        found = await side_requests.fetch(
            url, policy, sent=sent, headers=dict(headers), check=check, is_public_only=is_public_only
        )
        answer = await _decode(found, policy.max_bytes, budget)
        if limit < len(answer.body) <= max_bytes:
            budget.take(budget.left + 1)
    except SideRequestFailed as error:
        raise FetchFailed(str(error), code=error.code) from error
    except BrokenCoding as error:
        raise FetchFailed(str(error), code=Code.READ_ERROR) from error
    except BudgetSpent as error:
        raise FetchFailed(str(error), code=Code.TOO_LARGE) from error
    if len(answer.body) > max_bytes:
        raise FetchFailed(f"more than {max_bytes} bytes", code=Code.TOO_LARGE)
    return answer


def _build_counter(budget: PageBudget) -> Callable[[int], None]:
    def count(size: int) -> None:
        try:
            budget.take(size)
        except BudgetSpent as error:
            raise BodyTooLarge(str(error)) from error

    return count


async def _decode(found: SideAnswer, max_bytes: int, budget: PageBudget) -> Answer:
    """An answer without content codings, at most ``max_bytes`` of it; raises BrokenCoding and BudgetSpent."""
    body = found.body
    if found.codings:
        # A body of some bytes may have any length.
        limit = min(max_bytes, budget.left + len(body) + 1)
        is_large = len(body) > _THREAD_FROM_BYTES
        body = await asyncio.to_thread(found.decoded_body, limit) if is_large else found.decoded_body(limit)
        budget.take(max(len(body) - len(found.body), 0))
    names = ((name.decode("latin-1"), values) for name, values in dict.items(found.headers))
    pairs = tuple((name.lower(), value.decode("latin-1")) for name, values in names for value in values)
    return Answer(found.url, found.status, pairs, body, lost_login=found.lost_login)
