"""The item pipeline that finds what was read from the same bytes before, under this URL or another one.

So what was moved, or has other permissions alone, is not read by a converter once more. It is there for sources that are listed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.opening import open_cache
from searchcrawl.documents.known_texts import restore_answer
from searchcrawl.exceptions import CacheError, StoreError
from searchcrawl.items import Document, copy_with
from searchcrawl.run import Run
from searchcrawl.stages import stages_of
from searchcrawl.store.documents import document_queries

logger = logging.getLogger(__name__)

#: So many documents are looked for at once.
_MOST_AT_ONCE: Final = 64

_Found = Mapping[bytes, Mapping[str, Any]]


class _Batch(NamedTuple):
    """Digests that are looked for together, and what is found."""

    digests: list[bytes]
    found: asyncio.Future[_Found]


class KnownTextPipeline:
    """Gives documents whose bytes were read before the answer of the cache with their text.

    Bytes are the same if their sha256 is, and the record says that it is of these.
    """

    def __init__(self, run: Run, cache: DocumentCache) -> None:
        self._run = run
        self._cache = cache
        self._batch: _Batch | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> KnownTextPipeline:
        run = stages_of(crawler).get(Run)
        # After an edit everything is read again; and before a run is complete there is next to nothing to be found.
        if run.forced or not run.row.after_run or run.source.has_document_plugins:
            raise NotConfigured
        return cls(run, open_cache(run.project, run.source.name))

    def process_document(self, item: Document) -> Document | Awaitable[Document]:
        """The item with what is known of its bytes; at once where nothing is to be looked for."""
        is_known = item.body_digest == item.claim.body_digest
        if item.content_digest is None or is_known or item.claim.anew or item.refusal is not None or not item.body:
            return item
        return self._complete(item, item.content_digest)

    async def close_spider(self) -> None:
        self._cache.close()

    async def _complete(self, item: Document, digest: bytes) -> Document:
        batch = self._batch
        if batch is None or len(batch.digests) >= _MOST_AT_ONCE:
            digests = list[bytes]()
            batch = self._batch = _Batch(digests, asyncio.ensure_future(self._look(digests)))
        batch.digests.append(digest)
        # Others wait for it as well.
        fields = (await asyncio.shield(batch.found)).get(digest)
        answer = None if fields is None else restore_answer(item, fields)
        return item if answer is None else copy_with(item, cached=answer)

    async def _look(self, digests: list[bytes]) -> _Found:
        # After all that the engine has now.
        await asyncio.sleep(0)
        if self._batch is not None and self._batch.digests is digests:
            self._batch = None
        return await asyncio.to_thread(self._find, digests)

    def _find(self, digests: Sequence[bytes]) -> _Found:
        """The fields of a record of each of these bodies."""
        found = dict[bytes, Mapping[str, Any]]()
        try:
            records = self._run.read(document_queries.find_same_bytes, self._run.source_id, digests)
        except StoreError as error:
            logger.warning("%s; the same bytes are converted again", error)
            return found
        for digest, record in records.items():
            try:
                found[digest] = self._cache.read_fields(record.place, url=record.url)
            except CacheError as error:
                logger.warning("%s; the same bytes are converted again", error)
        return found
