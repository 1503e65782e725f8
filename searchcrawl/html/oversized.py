"""Big pages, parsed in a process that may be killed, so that the reactor never waits (D12, decision 18)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from searchcrawl.html.page import parse_html
from searchcrawl.items import Page
from searchcrawl.worker_pool import MAX_MEMORY_BYTES, TIMEOUT_SECONDS, WorkerPool

#: Bodies beyond this are parsed here.
OVERSIZED_BYTES: Final = 1_000_000
#: And those with more tags: whatever trick of nesting they play takes under a second below.
OVERSIZED_TAGS: Final = 20_000


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
        default_language: str,
        robots_headers: Sequence[str],
        user_agent: str,
    ) -> Future[Page]:
        """The page, as of ``parse_html``; fails with ConversionFailed (904) where a limit is passed."""
        return self._pool.submit(
            parse_html,
            body,
            url=url,
            content_type=content_type,
            default_charset=default_charset,
            default_language=default_language,
            robots_headers=tuple(robots_headers),
            user_agent=user_agent,
        )

    def close(self) -> None:
        """Ends the process; pages under way fail with 904."""
        self._pool.close()
