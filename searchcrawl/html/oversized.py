"""Big pages, parsed in a process that may be killed, so that the reactor never waits (X-D12, decision 18)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final, NamedTuple

from searchcrawl.html.page import parse_html
from searchcrawl.items import Link, Page
from searchcrawl.worker_pool import MAX_MEMORY_BYTES, TIMEOUT_SECONDS, WorkerPool

#: Bodies beyond this are parsed here.
OVERSIZED_BYTES: Final = 1_000_000
#: And those with more tags: whatever trick of nesting they play takes under a second below.
OVERSIZED_TAGS: Final = 20_000


class PackedPage(NamedTuple):
    """A page on its way between processes: its links as lines, and a byte each that tells nofollow.

    Hundreds of thousands of links as objects would be read in one go, and nothing else could run.
    """

    page: Page
    urls: str
    nofollow: bytes


def parse_packed(body: bytes, **about: Any) -> PackedPage:
    """``parse_html``; runs in the process."""
    page = parse_html(body, **about)
    urls = "\n".join(link.url for link in page.links)
    return PackedPage(replace(page, links=()), urls, bytes(link.nofollow for link in page.links))


def unpacked(packed: PackedPage) -> Page:
    """The page with its links."""
    urls = packed.urls.split("\n") if packed.nofollow else []
    links = tuple(Link(url, bool(nofollow)) for url, nofollow in zip(urls, packed.nofollow, strict=True))
    return replace(packed.page, links=links)


def _hand_over(done: Future[PackedPage], answer: Future[Page]) -> None:
    """Called in a thread of the pool."""
    error = done.exception()
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(unpacked(done.result()))


def is_oversized(body: bytes) -> bool:
    """Whether a body may take long to parse, and so goes to OversizedParser."""
    size = len(body)
    return size > OVERSIZED_BYTES or (size > 3 * OVERSIZED_TAGS and body.count(b"<") > OVERSIZED_TAGS)


class OversizedParser:
    """``parse_html`` in another process, with a limit of time and of memory."""

    def __init__(
        self,
        *,
        workers: int = 1,
        max_memory_bytes: int = MAX_MEMORY_BYTES,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._pool = WorkerPool(workers=workers, max_memory_bytes=max_memory_bytes, timeout_seconds=timeout_seconds)

    def submit(
        self,
        body: bytes,
        *,
        url: str,
        content_type: str,
        default_charset: str,
        robots_headers: Sequence[str],
        user_agent: str,
        wanted: frozenset[str] = frozenset(),
    ) -> Future[Page]:
        """The page, as of ``parse_html``; fails with ConversionFailed (904) where a limit is passed."""
        answer: Future[Page] = Future()
        answer.set_running_or_notify_cancel()
        packed = self._pool.submit(
            parse_packed,
            body,
            url=url,
            content_type=content_type,
            default_charset=default_charset,
            robots_headers=tuple(robots_headers),
            user_agent=user_agent,
            wanted=wanted,
        )
        packed.add_done_callback(lambda done: _hand_over(done, answer))
        return answer

    def close(self) -> None:
        """Ends the process; pages under way fail with 904."""
        self._pool.close()
