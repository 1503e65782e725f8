"""What the documents of a host have in common is frozen at the end of each completed run, and applied when they are sent.

So it never depends on the order of the visits. Change detection knows nothing of it: records and digests have the page as
it is. Documents that went out with something else are sent again, once, with the last batch of the run.

Each step may be the last one of a process. Until all documents that differ are to be sent again, the row of a host has what
was before as well, and the next completed run begins with them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from searchcrawl import urls
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.segment import Place
from searchcrawl.exceptions import DamagedRecord
from searchcrawl.failpoints import reach
from searchcrawl.rules.copy_order import rank
from searchcrawl.run import Run
from searchcrawl.store.batches.resend_table import send_again
from searchcrawl.store.documents import sample_table
from searchcrawl.store.documents.frozen_table import Frozen, FrozenTable
from searchcrawl.store.documents.sample_table import SampledDocument

T = TypeVar("T", bytes, str)
T_contra = TypeVar("T_contra", bytes, str, contravariant=True)

#: Of fewer documents of a host nothing can be said.
FEWEST_DOCUMENTS: Final = 10
#: So many documents of a host tell what they have in common.
_MOST_DOCUMENTS: Final = 200

#: The fields of a document as the cache has them, and its ``access_url``.
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Common(Generic[T]):
    """Something that documents of a host have in common.

    ``types`` are those of the documents that tell it, and get it; None: all. ``nothing`` is the value of a host of which
    nothing is known. ``find`` makes a value of records and of the value before. ``apply`` is what comes of a record with
    a value: a document of which something else comes is sent again.
    """

    name: str
    table: FrozenTable[T]
    types: Collection[str] | None
    nothing: T
    find: Callable[[Iterator[Record], T], T]
    apply: Callable[[Record, T], object]
    report: Callable[[str, T], None]
    on_marked: Callable[[Run, Collection[str]], None] | None = None


class LookedAt(Protocol[T_contra]):
    """The documents that are looked at for something that they have in common."""

    def sample(self) -> Mapping[str, Sequence[SampledDocument]]:
        """Those that tell it, by host, in an order that does not depend on the order of the visits."""
        ...

    def find_sent(self, values: Collection[T_contra]) -> Iterator[Sequence[SampledDocument]]:
        """Those that were sent and may differ where it was, or is, one of these values; some at a time."""
        ...


class _Sampled(Generic[T]):
    """A sample of each host tells what its documents have in common, and all may differ."""

    def __init__(self, run: Run, common: Common[T]) -> None:
        self._run = run
        self._types = common.types

    def sample(self) -> Mapping[str, Sequence[SampledDocument]]:
        """Of a host with few documents nothing can be said."""
        return _sample(self._run, self._types)

    def find_sent(self, values: Collection[T]) -> Iterator[Sequence[SampledDocument]]:  # all of them
        """All of them."""
        return self._run.read_pages(sample_table.find_sent, source_id=self._run.source_id, types=self._types)


def load(run: Run, common: Common[T]) -> dict[str, T]:
    """What is frozen of each host."""
    frozen = run.read(common.table.load, source_id=run.source_id)
    return {host: row.value for host, row in frozen.items() if row.value}


def freeze(
    run: Run, cache: DocumentCache, common: Common[T], *, wanted: bool, looked_at: LookedAt[T] | None = None
) -> bool:
    """Looks at the documents of each host anew, and has those sent again that differ; raises StoreError, CacheError.

    Where it is not ``wanted`` any more, all documents go without it. Without ``cache.preserve`` what is known stays, and
    nothing becomes known: which records are left at the end of a run is chance. Returns whether documents differ.
    """
    looked_at = looked_at or _Sampled(run, common)
    differed = _send_differing(run, cache, common, looked_at)
    if not run.project.cache.preserve:
        return differed
    frozen = run.read(common.table.load, source_id=run.source_id)
    sampled = looked_at.sample() if wanted else {}
    for host, documents in sampled.items():
        digest = _digest(documents)
        if host not in frozen or frozen[host].sample != digest:
            _freeze_host(run, cache, common, host, documents, digest, frozen.get(host))
    for host in frozen.keys() - sampled.keys():
        row = frozen[host]
        if row.value:
            _write(run, common, Frozen(host, row.version + 1, b"", common.nothing, row.value))
        else:
            run.write(common.table.forget, source_id=run.source_id, host=host)
    return _send_differing(run, cache, common, looked_at) or differed


def _sample(run: Run, types: Collection[str] | None) -> dict[str, list[SampledDocument]]:
    """The documents that are looked at, by host; of a host with few of them nothing can be said."""
    found: dict[str, list[SampledDocument]] = {}
    sampled = run.read(sample_table.find_sample, source_id=run.source_id, types=types)
    for document in _leave_copies_out(sampled):
        found.setdefault(urls.host_and_port(document.url), []).append(document)
    return {host: several[:_MOST_DOCUMENTS] for host, several in found.items() if len(several) >= FEWEST_DOCUMENTS}


def _leave_copies_out(sampled: Sequence[SampledDocument]) -> list[SampledDocument]:
    """One document of each content, in the order in which they came: near copies may be exact copies of each other, too."""
    best: dict[bytes, SampledDocument] = {}
    for document in sampled:
        if document.copy_digest is not None:
            known = best.get(document.copy_digest)
            if known is None or rank(document.url) < rank(known.url):
                best[document.copy_digest] = document
    return [one for one in sampled if one.copy_digest is None or best[one.copy_digest] is one]


def _digest(documents: Sequence[SampledDocument]) -> bytes:
    digest = hashlib.sha256()
    for document in documents:
        digest.update(document.url.encode() + b"\n" + document.fields_digest)
    return digest.digest()


def _freeze_host(
    run: Run,
    cache: DocumentCache,
    common: Common[T],
    host: str,
    documents: Sequence[SampledDocument],
    digest: bytes,
    frozen: Frozen[T] | None,
) -> None:
    before = common.nothing if frozen is None else frozen.value
    version = 0 if frozen is None else frozen.version
    records = _Records(cache, documents)
    value = common.find(iter(records), before)
    # Where the cache gave most of its records up, what is known stays.
    if value == before or records.read * 2 < len(documents):
        _write(run, common, Frozen(host, version, digest, before, None))
    else:
        common.report(host, value)
        _write(run, common, Frozen(host, version + 1, digest, value, before))


def _write(run: Run, common: Common[T], frozen: Frozen[T]) -> None:
    run.write(common.table.freeze, source_id=run.source_id, frozen=frozen)
    reach(f"{common.name}.frozen")


class _Records:
    """The records of documents, one after the other, and how many were read."""

    def __init__(self, cache: DocumentCache, documents: Sequence[SampledDocument]) -> None:
        self._cache = cache
        self._documents = documents
        self.read = 0

    def __iter__(self) -> Iterator[Record]:
        for document in self._documents:
            record = _read_record(self._cache, document)
            if record is not None:
                self.read += 1
                yield record


def _read_record(cache: DocumentCache, row: SampledDocument) -> Record | None:
    """The record of a document; None where it cannot be read: what sends the document says so."""
    if row.segment is None or row.record_offset is None or row.response_bytes is None or row.fields_bytes is None:
        return None
    place = Place(
        segment=row.segment, offset=row.record_offset, response_bytes=row.response_bytes, fields_bytes=row.fields_bytes
    )
    try:
        return {**cache.read_fields(place, url=row.url), "access_url": row.url}
    except DamagedRecord:
        return None


def _send_differing(run: Run, cache: DocumentCache, common: Common[T], looked_at: LookedAt[T]) -> bool:
    """Has the documents sent again that were, or may have been, sent with another value than is frozen; whether there are any."""
    frozen = run.read(common.table.load, source_id=run.source_id)
    changed = {host: (row.previous, row.value) for host, row in frozen.items() if row.previous is not None}
    if not changed:
        return False
    found = False
    for rows in looked_at.find_sent([value for versions in changed.values() for value in versions]):
        differing = [
            row.url_id
            for row in rows
            if (versions := changed.get(urls.host_and_port(row.url))) and _differs(cache, row, common, versions)
        ]
        if differing:
            found = True
            run.write(send_again, url_ids=differing)
            reach(f"{common.name}.marked")
    if common.on_marked is not None:
        common.on_marked(run, changed)
    run.write(common.table.settle, source_id=run.source_id)
    return found


def _differs(cache: DocumentCache, row: SampledDocument, common: Common[T], versions: tuple[T, T]) -> bool:
    record = _read_record(cache, row)
    return record is not None and common.apply(record, versions[0]) != common.apply(record, versions[1])
