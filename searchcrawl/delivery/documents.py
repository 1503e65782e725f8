"""The documents of a batch, built from rows of the store and records of the cache, in parts of some MB.

Each part is read while the index works on the part before it.

URLs of copies in other sources are written as those show them (A4, F4).
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from searchcrawl import access, clock, urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery.freezing import load_of_hosts
from searchcrawl.exceptions import ConfigurationError, DamagedRecord, UnknownSource
from searchcrawl.index_fields import FORMS, find_analysed, find_language_field
from searchcrawl.items import IndexedDocument
from searchcrawl.rules import near_copies
from searchcrawl.rules.lifecycle import is_denied
from searchcrawl.rules.rewriting import DisplayMap
from searchcrawl.run import Run
from searchcrawl.sources.loading import build_display_map, load_source
from searchcrawl.store import batch_table
from searchcrawl.store.batch_table import BatchDocument
from searchcrawl.store.documents import anchor_table, document_queries, duplicate_key_table
from searchcrawl.store.documents.document_queries import ReadableRow
from searchcrawl.store.documents.duplicate_key_table import Copy
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.runs import run_table

logger = logging.getLogger(__name__)

#: How much text a request to the index has (5 to 10 MB in all).
_CHARACTERS: Final = 5_000_000
_ROWS: Final = 500
#: Fields that the record has as the index gets them.
_OF_PAGE: Final = ("title", "content", "description", "author", "subject", "language")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPart:
    """Some documents of a batch by the id of their URL, and the ids of those whose record the cache has lost."""

    documents: Sequence[tuple[int, IndexedDocument]]
    lost: Sequence[int]


class _OfOthers(NamedTuple):
    """The copies of documents, and the texts of links to them, by row id."""

    duplicates: Mapping[int, Sequence[Copy]]
    anchors: Mapping[int, Sequence[str]]


def read_parts(run: Run, cache: DocumentCache, number: int) -> Generator[BatchPart, None, None]:
    """The documents of a batch without a receipt, by rising id of the URL; a thread reads one part ahead.

    To be closed if it is not read to its end. Raises CacheError, StoreError.
    """
    with closing(_read_all(run, cache, number)) as parts, ThreadPoolExecutor(1, "reading") as thread:
        coming = thread.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = thread.submit(next, parts, None)
            yield part


def _read_all(run: Run, cache: DocumentCache, number: int) -> Generator[BatchPart, None, None]:
    reader, after = DocumentReader(run, cache), 0
    while True:
        rows, others = run.read(_next_rows, number=number, after=after)
        if not rows:
            return
        after = rows[-1].url_id
        yield from reader.build(rows, others, fetches_again=True)


def read_indexed(run: Run, cache: DocumentCache) -> Generator[BatchPart, None, None]:
    """The documents of a source that the index has, by rising id of the URL, each with its ``crawl_version``.

    Raises CacheError, StoreError.
    """
    reader, after = DocumentReader(run, cache), 0
    while True:
        found, others = run.read(_next_indexed, source_id=run.source_id, after=after)
        if not found:
            return
        after = found[-1].row.url_id
        versions = {each.row.url_id: each.version for each in found}
        for part in reader.build([each.row for each in found], others):
            numbered = [
                (url_id, replace(document, fields={**document.fields, "crawl_version": versions[url_id]}))
                for url_id, document in part.documents
            ]
            yield BatchPart(documents=numbered, lost=part.lost)


class _ForeignUrls:
    """Shows the URLs of copies in other sources; it reads the file of each of these once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._displays: dict[int, DisplayMap | None] = {}

    def show_all(self, duplicates: Mapping[int, Sequence[Copy]]) -> Mapping[int, Sequence[Copy]]:
        """The copies of documents by row id; those of other sources with the URLs that they show."""
        return {
            url_id: [
                *(copy for copy in copies if self._is_own(copy)),
                *sorted(self._show(copy) for copy in copies if not self._is_own(copy)),
            ]
            for url_id, copies in duplicates.items()
        }

    def _is_own(self, copy: Copy) -> bool:
        return copy.source_id == self._run.source_id

    def _show(self, copy: Copy) -> Copy:
        if copy.source_id is None:
            return copy
        if copy.source_id not in self._displays:
            self._displays[copy.source_id] = self._load(copy.source_id)
        display = self._displays[copy.source_id]
        return Copy(copy.url if display is None else display.show(copy.url, copy.display_url))

    def _load(self, source_id: int) -> DisplayMap | None:
        name = self._run.read(run_table.find_source_names).get(source_id, "")
        try:
            return build_display_map(load_source(self._run.project, name))
        except (ConfigurationError, UnknownSource) as error:
            logger.warning("copies in %s are listed with the URLs that are fetched: %s", name, error)
            return None


class DocumentReader:
    """Builds documents of rows for one receiver, in the thread ``reading`` or that of its caller; what is frozen of hosts is read anew by each reader."""

    def __init__(self, run: Run, cache: DocumentCache) -> None:
        self._run = run
        self._cache = cache
        self._of_hosts = load_of_hosts(run)
        self._foreign = _ForeignUrls(run)

    def read(self, rows: Sequence[BatchDocument]) -> Generator[BatchPart, None, None]:
        """The documents of rows that are at hand, in parts of some MB; raises CacheError, StoreError."""
        yield from self.build(rows, self._run.read(_find_others, url_ids=[row.url_id for row in rows]))

    def build(
        self, rows: Sequence[BatchDocument], others: _OfOthers, *, fetches_again: bool = False
    ) -> Generator[BatchPart, None, None]:
        """The same, with what other pages say of them."""
        duplicates = self._foreign.show_all(others.duplicates)
        documents: list[tuple[int, IndexedDocument]] = []
        lost: list[int] = []
        characters = 0
        for row in rows:
            try:
                record = _read_record(self._cache, row)
            except DamagedRecord as error:
                if fetches_again:
                    logger.error("%s; %s is fetched again", error, row.url)
                lost.append(row.url_id)
                continue
            document = build_indexed_document(
                row,
                self._of_hosts.apply(record, row),
                source=self._run.source.name,
                duplicates=duplicates.get(row.url_id, ()),
                anchors=others.anchors.get(row.url_id, ()),
                display=self._run.display,
                denied=self._run.source.kind.says_access and is_denied(row.failures),
            )
            documents.append((row.url_id, document))
            # The document has its content once more for each of its languages.
            characters += sum(len(value) for value in document.fields.values() if isinstance(value, str))
            if characters >= _CHARACTERS:
                yield BatchPart(documents=documents, lost=lost)
                documents, lost, characters = [], [], 0
        yield BatchPart(documents=documents, lost=lost)


def build_indexed_document(
    row: BatchDocument,
    record: Mapping[str, Any],
    *,
    source: str,
    duplicates: Sequence[Copy],
    anchors: Sequence[str] = (),
    display: DisplayMap | None = None,
    denied: bool = False,
) -> IndexedDocument:
    """The document as the index receives it (fields: index_fields.py); empty values are left out.

    ``anchors`` are the texts of links to it. ``denied``: it may not be read any more, so that nobody sees it.
    With ``display`` the URLs and the host are those that are shown; the id stays that of the access URL.
    """
    url = row.url if display is None else display.show(row.url, row.display_url)
    languages = record.get("languages") or list(filter(None, [record.get("language")]))
    may_see = access.HIDDEN if denied else access.read_record(record)
    fields: dict[str, Any] = {
        "url": url,
        "access_url": row.url,
        "source": source,
        "host": urls.host(url) if url == row.url else urls.parse(url).host,
        "depth": row.depth,
        **{name: record.get(name) for name in _OF_PAGE},
        "languages": languages,
        "mimetype": row.mimetype,
        "last_modified": clock.from_http_date(row.last_modified) or clock.from_file_date(record.get("modified")),
        "content_length": row.content_length,
        "checksum": row.fields_digest.hex(),
        "text_signature": near_copies.sign(record.get("content") or "", may_see),
        "first_seen": clock.from_ms(row.first_seen_ms),
        "crawled_at": clock.from_ms(row.last_fetched_ms),
        "duplicates": [shown for shown in _show_copies(duplicates, display) if shown != url],
        "anchor": list(anchors),
        "headings": list(record.get("headings", ())),
        **_copy_for_languages(record, languages),
        # After these, because an attribute may fill a field that every document has.
        **record.get("attributes", {}),
        **access.list_fields(may_see),
    }
    return IndexedDocument(
        id=urls.document_id(source, row.url),
        fields={name: value for name, value in fields.items() if value not in (None, "", [])},
    )


def _next_rows(transaction: Transaction, *, number: int, after: int) -> tuple[list[BatchDocument], _OfOthers]:
    """The next documents of a batch, and what other pages say of them."""
    rows = batch_table.find_without_receipt(transaction, number, after=after, limit=_ROWS)
    return rows, _find_others(transaction, url_ids=[row.url_id for row in rows])


def _find_others(transaction: Transaction, *, url_ids: Sequence[int]) -> _OfOthers:
    return _OfOthers(duplicate_key_table.find_duplicates(transaction, url_ids), anchor_table.load(transaction, url_ids))


def _next_indexed(transaction: Transaction, *, source_id: int, after: int) -> tuple[list[ReadableRow], _OfOthers]:
    found = document_queries.find_readable(transaction, source_id, after=after, limit=_ROWS)
    return found, _find_others(transaction, url_ids=[each.row.url_id for each in found])


def _read_record(cache: DocumentCache, row: BatchDocument) -> dict[str, Any]:
    if row.place is None:
        raise DamagedRecord(f"no record in the cache for {row.url}")
    return cache.read_fields(row.place, url=row.url)


def _show_copies(duplicates: Sequence[Copy], display: DisplayMap | None) -> list[str]:
    """The URLs of copies, each once: several sources may have the same one."""
    if display is None:
        return list(dict.fromkeys(copy.url for copy in duplicates))
    return sorted({display.show(copy.url, copy.display_url) for copy in duplicates})


def _copy_for_languages(record: Mapping[str, Any], languages: Sequence[str]) -> dict[str, Any]:
    """Title and content once more for the analysis by each of their languages."""
    return {
        find_language_field(name, language): record.get(name) for language in find_analysed(languages) for name in FORMS
    }
