"""Runs converters in worker processes, with a limit of time and of memory (X-R15; docs: decisions/worker-processes)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

from searchcrawl.convert.converter import ConversionContext, Converter
from searchcrawl.items import Link, Page
from searchcrawl.worker_pool import MAX_MEMORY_BYTES, TIMEOUT_SECONDS, WorkerPool


class ConversionPool:
    """One worker process for each converter, started with its first body: a slow format does not delay others."""

    def __init__(self, *, max_memory_bytes: int = MAX_MEMORY_BYTES, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._max_memory_bytes = max_memory_bytes
        self._timeout_seconds = timeout_seconds
        self._pools: dict[str, WorkerPool] = {}

    def submit(self, converter: Converter, body: bytes, context: ConversionContext) -> Future[Page]:
        """The page; fails with ConversionFailed: 903 for a broken body, 904 if a limit was exceeded.

        It fails with WorkersUnavailable where no worker process can read anything.
        """
        pool = self._pools.get(converter.name)
        if pool is None:
            memory = min(self._max_memory_bytes, converter.max_memory_bytes)
            pool = WorkerPool(max_memory_bytes=memory, timeout_seconds=self._timeout_seconds)
            self._pools[converter.name] = pool
        page: Future[Page] = Future()
        page.set_running_or_notify_cancel()
        packed = pool.submit(_convert_packed, converter.convert, body, context)
        packed.add_done_callback(lambda done: _hand_over(done, page))
        return page

    def close(self) -> None:
        """Ends the processes; documents that are being converted fail with 904. Blocks for up to 5 s each."""
        for pool in self._pools.values():
            pool.close()


class _PackedPage(NamedTuple):
    """A page without its links; the links as lines, with a byte for the nofollow of each, and the texts of some by place.

    Unpickling hundreds of thousands of Link objects would stop all other threads until it is done.
    """

    page: Page
    urls: str
    nofollow: bytes
    texts: dict[int, tuple[str, ...]]


def _convert_packed(
    convert: Callable[[bytes, ConversionContext], Page], body: bytes, context: ConversionContext
) -> _PackedPage:
    """Runs in the worker process."""
    page = convert(body, context)
    urls = "\n".join(link.url for link in page.links)
    texts = {place: link.texts for place, link in enumerate(page.links) if link.texts}
    return _PackedPage(replace(page, links=()), urls, bytes(link.nofollow for link in page.links), texts)


def _unpack(packed: _PackedPage) -> Page:
    urls = packed.urls.split("\n") if packed.nofollow else []
    texts = packed.texts.get
    links = tuple(
        Link(url, bool(nofollow), texts=texts(place, ()))
        for place, (url, nofollow) in enumerate(zip(urls, packed.nofollow, strict=True))
    )
    return replace(packed.page, links=links)


def _hand_over(done: Future[_PackedPage], page: Future[Page]) -> None:
    """Runs in a thread of the pool."""
    try:
        unpacked = _unpack(done.result())
    except Exception as error:  # noqa: BLE001 - whatever it is, the page must not wait for ever
        page.set_exception(error)
    else:
        page.set_result(unpacked)
