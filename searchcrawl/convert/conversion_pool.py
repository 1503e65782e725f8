"""The worker processes that read bodies: one for each converter.

What runs in them is here, so that they import none of the crawler: with it, each would start seven times as slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from searchcrawl.bodies import Body, LargeBody, read_whole
from searchcrawl.convert.converter import Converter
from searchcrawl.html.context import ConversionContext
from searchcrawl.items import PackedPage, Page, pack_page, unpack_page
from searchcrawl.worker_pool import MAX_MEMORY_BYTES, TIMEOUT_SECONDS, WorkerPool

T = TypeVar("T")


class ConversionPool:
    """One worker process for each converter, started with its first body: a slow format does not delay others."""

    def __init__(self, *, max_memory_bytes: int = MAX_MEMORY_BYTES, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._max_memory_bytes = max_memory_bytes
        self._timeout_seconds = timeout_seconds
        self._pools: dict[str, WorkerPool] = {}

    def submit(self, converter: Converter, body: Body, context: ConversionContext) -> Future[Page]:
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
        if isinstance(body, bytes):
            packed = pool.submit(_convert_packed, converter.convert, body, context)
        elif converter.convert_large is not None:
            packed = pool.submit(_convert_packed, converter.convert_large, body, context)
        else:
            packed = pool.submit(_convert_whole, converter.convert, body, context)
        packed.add_done_callback(lambda done: _hand_over(done, page))
        return page

    def close(self) -> None:
        """Ends the processes; documents that are being converted fail with 904. Blocks for up to 5 s each."""
        for pool in self._pools.values():
            pool.close()


def _convert_packed(convert: Callable[[T, ConversionContext], Page], body: T, context: ConversionContext) -> PackedPage:
    """Runs in the worker process."""
    return pack_page(convert(body, context))


def _convert_whole(
    convert: Callable[[bytes, ConversionContext], Page], body: LargeBody, context: ConversionContext
) -> PackedPage:
    """Runs in the worker process, whose memory is limited."""
    return pack_page(convert(read_whole(body), context))


def _hand_over(done: Future[PackedPage], page: Future[Page]) -> None:
    """Runs in a thread of the pool."""
    try:
        unpacked = unpack_page(done.result())
    except Exception as error:  # noqa: BLE001 - whatever it is, the page must not wait for ever
        page.set_exception(error)
    else:
        page.set_result(unpacked)
