"""Documents, converted in processes that may be killed (decision 17; X-R15)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from searchcrawl.convert.document import convert_pdf
from searchcrawl.convert.plain_text import convert_text
from searchcrawl.items import Page
from searchcrawl.worker_pool import MAX_MEMORY_BYTES, TIMEOUT_SECONDS, WorkerPool


class ConversionPool:
    """``convert_pdf`` and ``convert_text`` in another process, with a limit of time and of memory."""

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
        robots_headers: Sequence[str],
        user_agent: str,
        name: str = "",
    ) -> Future[Page]:
        """The page; fails with ConversionFailed: 903 for a broken body, 904 where a limit is passed."""
        return self._pool.submit(
            convert_pdf,
            body,
            url=url,
            robots_headers=tuple(robots_headers),
            user_agent=user_agent,
            name=name,
        )

    def submit_text(
        self,
        body: bytes,
        *,
        url: str,
        content_type: str,
        default_charset: str,
        robots_headers: Sequence[str],
        user_agent: str,
        name: str = "",
    ) -> Future[Page]:
        """The page of a long text; fails with ConversionFailed (904) where a limit is passed."""
        return self._pool.submit(
            convert_text,
            body,
            url=url,
            content_type=content_type,
            default_charset=default_charset,
            robots_headers=tuple(robots_headers),
            user_agent=user_agent,
            name=name,
        )

    def close(self) -> None:
        """Ends the processes; documents under way fail with 904."""
        self._pool.close()
