"""The bodies of what is as it was, from the cache: of these the reader says what is known besides, and reads none."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from searchcrawl import urls
from searchcrawl.bodies import Body
from searchcrawl.cache.opening import open_cache
from searchcrawl.exceptions import CacheError, StoreError
from searchcrawl.listing.model import Read, Reader, ReadRequest, SameBody, Unread
from searchcrawl.run import Run
from searchcrawl.store.documents import document_queries

logger = logging.getLogger(__name__)


class WholeReader:
    """A reader whose answers have a body each. Where the cache has none of what is as it was, that is read after all.

    Thread-safe, as the reader is.
    """

    def __init__(self, reader: Reader, run: Run) -> None:
        self._reader = reader
        self._run = run
        self._cache = open_cache(run.project, run.source.name)

    def read(self, requests: Sequence[ReadRequest]) -> Sequence[Read | Unread]:
        """What the requests bring, in their order; blocks."""
        found = self._reader.read(requests)
        same = [request.url for request, answer in zip(requests, found, strict=True) if isinstance(answer, SameBody)]
        bodies = self._find_bodies(same) if same else {}
        lost = [url for url in same if url not in bodies]
        whole = self._reader.read([ReadRequest(url, True) for url in lost]) if lost else ()
        again = dict(zip(lost, whole, strict=True))
        return [
            self._complete(again.get(request.url, answer), bodies.get(request.url))
            for request, answer in zip(requests, found, strict=True)
        ]

    def close(self) -> None:
        """Gives back what it holds."""
        self._reader.close()
        self._cache.close()

    def _find_bodies(self, wanted: Sequence[str]) -> dict[str, Body]:
        keys = [urls.key(url) for url in wanted]
        bodies = dict[str, Body]()
        try:
            records = self._run.read(document_queries.find_records, self._run.source_id, keys)
        except StoreError as error:
            logger.warning("%s; files or rows are read again", error)
            return bodies
        for record in records.values():
            try:
                bodies[record.url] = self._cache.read_page(record.place, url=record.url).body
            except CacheError as error:
                logger.warning("%s; files or rows are read again", error)
        return bodies

    @staticmethod
    def _complete(answer: Read | SameBody | Unread, body: Body | None) -> Read | Unread:
        if not isinstance(answer, SameBody):
            return answer
        if body is None:
            raise TypeError("a reader said of a body that nobody knows that it is as it was")
        return Read(body=body, headers=answer.headers)
