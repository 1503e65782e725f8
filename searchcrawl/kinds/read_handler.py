"""Reads what was listed in the place of a download: several things at once, in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.headers import Headers

from searchcrawl.codes import Code
from searchcrawl.http.large_response import build_response
from searchcrawl.http.visit_end import build_visit_end, find_claim
from searchcrawl.items import Claim
from searchcrawl.kind import load_named
from searchcrawl.kinds.known_bodies import WholeReader
from searchcrawl.kinds.listing import StoredMarks
from searchcrawl.listing.model import Read, ReadRequest, Unread
from searchcrawl.run import Run
from searchcrawl.stages import stages_of

#: So many things are read in one call, and so many calls are under way.
_MOST_AT_ONCE: Final = 32
_THREADS: Final = 4
_GONE: Final = 404

#: What is read together, and the place of one thing in it.
_Place = tuple["asyncio.Future[Sequence[Read | Unread]]", int]


class ReadHandler:
    """Answers requests for what is listed by its reader; requests that come while it reads are read together.

    Visits end with the codes of the reader. For other requests, as for an archive of which a file is visited, what is gone is a
    404, and a failure an OSError.
    """

    lazy = True

    def __init__(self, reader: WholeReader) -> None:
        self._reader = reader
        self._waiting: list[tuple[ReadRequest, asyncio.Future[_Place]]] = []
        self._under_way = 0
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="reading-files")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ReadHandler:
        run = stages_of(crawler).get(Run)
        return cls(WholeReader(load_named(run.source.kind.reader)(run.source, run.project, StoredMarks(run)), run))

    async def download_request(self, request: Request) -> Response:
        claim = find_claim(request)
        # What no lister has named, as what somebody typed, is looked at as closely as what is not listed any more.
        is_listed = claim is None or claim.version is not None
        found = await self._read(ReadRequest(request.url, is_listed, _find_version(claim)))
        if isinstance(found, Read):
            headers = Headers()
            for name, value in found.headers:
                headers.appendlist(name, value)
            return build_response(Response, request.url, headers=headers, body=found.body, request=request)
        if claim is not None:
            raise build_visit_end(request, claim, found.code, error=found.error, transient=found.transient)
        if found.code == Code.NO_LONGER_LISTED:
            return Response(request.url, status=_GONE, request=request)
        raise OSError(found.error)

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        self._reader.close()

    async def _read(self, request: ReadRequest) -> Read | Unread:
        taken: asyncio.Future[_Place] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, taken))
        if self._under_way < _THREADS:
            self._under_way += 1
            # After all that the engine sends now.
            asyncio.get_running_loop().call_soon(self._begin)
        together, place = await taken
        return (await asyncio.shield(together))[place]

    def _begin(self) -> None:
        requests, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
        if not requests:
            self._under_way -= 1
            return
        loop = asyncio.get_running_loop()
        together = loop.run_in_executor(self._threads, self._reader.read, [request for request, _ in requests])
        for place, (_, taken) in enumerate(requests):
            if not taken.done():
                taken.set_result((together, place))
        together.add_done_callback(lambda _: self._begin())


def _find_version(claim: Claim | None) -> int | None:
    """The version in which a body is known, where it is the one that is listed."""
    if claim is None or claim.version is None or claim.version != claim.read_version:
        return None
    return claim.version or None
