"""The titles that pages of a host share, frozen at the end of each completed run; documents go out with ones that tell (C8).

All titles of a source are counted with the texts of links (``delivery.anchors``). Only of pages whose title may be shared the
records are read, for their headings.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from searchcrawl import urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.delivery.freezing import Common, Record, freeze, load
from searchcrawl.rules.host_texts import (
    FEWEST_STILL_SHARING,
    NamedPage,
    choose_title,
    count_titles,
    key_of_own,
    pack_keys,
    select_shared,
    unpack_keys,
)
from searchcrawl.run import Run
from searchcrawl.store.documents import sample_table
from searchcrawl.store.documents.frozen_table import TITLES
from searchcrawl.store.documents.sample_table import HTML, SampledDocument

logger = logging.getLogger(__name__)

#: The titles that pages of each host share, by their keys.
SharedTitles = Mapping[str, frozenset[int]]

#: Titles are counted by so many bits of their keys: two that have the same count as one, and a record more is read.
_BUCKETS: Final = 1 << 22
_MOST_COUNTED: Final = 255
#: Documents that are looked up at once.
_PART: Final = 500


class TitleCounts:
    """Which documents may share their titles: 12 bytes a document, whatever its title."""

    def __init__(self) -> None:
        self._ids = array("q")
        self._buckets = array("I")
        self._counts = bytearray(_BUCKETS)

    def add(self, url_id: int, title: str) -> None:
        """Adds a document."""
        bucket = key_of_own(title) % _BUCKETS
        self._ids.append(url_id)
        self._buckets.append(bucket)
        if self._counts[bucket] < _MOST_COUNTED:
            self._counts[bucket] += 1

    def find_shared(self) -> Iterator[int]:
        """The ids of documents whose title may be shared, by rising id, and of those without a title."""
        none, counts = key_of_own("") % _BUCKETS, self._counts
        for url_id, bucket in zip(self._ids, self._buckets, strict=True):
            if counts[bucket] >= FEWEST_STILL_SHARING or bucket == none:
                yield url_id

    def find(self, keys: Collection[int]) -> Iterator[int]:
        """The ids of documents whose title may have one of these keys, by rising id, and of those without a title."""
        buckets = {key_of_own("") % _BUCKETS, *(key % _BUCKETS for key in keys)}
        return (url_id for url_id, bucket in zip(self._ids, self._buckets, strict=True) if bucket in buckets)


def load_titles(run: Run) -> SharedTitles:
    """The titles that pages of each host of a source share."""
    return {host: unpack_keys(packed) for host, packed in load(run, _COMMON).items()}


def tell_title(record: Record, url: str, mimetype: str, shared: SharedTitles) -> object:
    """The title of a document, by its record and by what its host shares."""
    title = record.get("title")
    keys = shared.get(urls.host_and_port(url)) if shared else None
    if mimetype not in HTML or (title and not keys):
        return title
    return choose_title(_read(record, url), keys or ())


def freeze_titles(run: Run, cache: DocumentCache, titles: TitleCounts) -> bool:
    """Finds the shared titles of each host anew; returns whether documents are to be sent again; raises StoreError, CacheError."""
    return freeze(run, cache, _COMMON, wanted=True, looked_at=_Titled(run, titles))


class _Titled:
    """The documents that are looked at for their titles."""

    def __init__(self, run: Run, titles: TitleCounts) -> None:
        self._run = run
        self._titles = titles

    def sample(self) -> Mapping[str, list[SampledDocument]]:
        """Those whose title may be shared, by host."""
        found: dict[str, list[SampledDocument]] = {}
        for document in self._load(self._titles.find_shared(), is_sent=False):
            found.setdefault(urls.host_and_port(document.url), []).append(document)
        # The ids depend on the order of the visits.
        return {host: sorted(several, key=lambda each: each.url) for host, several in found.items()}

    def find_sent(self, values: Collection[bytes]) -> Iterator[list[SampledDocument]]:
        """Those that were sent whose title is, or was, a shared one."""
        keys = {key for packed in values for key in unpack_keys(packed)}
        found = list(self._load(self._titles.find(keys), is_sent=True))
        yield from (found[at : at + _PART] for at in range(0, len(found), _PART))

    def _load(self, url_ids: Iterator[int], *, is_sent: bool) -> Iterator[SampledDocument]:
        wanted = list(url_ids)
        for at in range(0, len(wanted), _PART):
            part = wanted[at : at + _PART]
            yield from self._run.read(
                sample_table.load, source_id=self._run.source_id, url_ids=part, types=HTML, is_sent=is_sent
            )


def _read(record: Record, url: str) -> NamedPage:
    headings = record.get("headings") or ()
    return NamedPage(
        url=url,
        title=str(record.get("title") or ""),
        headings=headings,
        naming=record.get("naming") or 0,
        line=str(record.get("content") or "").partition("\n")[0],
    )


def _find(records: Iterator[Record], before: bytes) -> bytes:
    counts = count_titles(_read(record, record["access_url"]) for record in records)
    return pack_keys(select_shared(counts, before=unpack_keys(before)))


def _tell(record: Record, packed: bytes) -> str:
    return choose_title(_read(record, record["access_url"]), unpack_keys(packed))


def _report(host: str, packed: bytes) -> None:
    logger.info("%s: titles that several of its pages share or could have: %d", host, len(unpack_keys(packed)))


_COMMON: Final[Common[bytes]] = Common(
    name="titles", table=TITLES, types=HTML, nothing=b"", find=_find, apply=_tell, report=_report
)
