"""Writes the documents of a group of visits, and resolves their duplicates, within the group's transaction.

The writer thread calls it, and the helper thread that opens the writer; ``resolve_again`` also runs at the end of a run, before
the last batch in a helper thread and then in the delivery thread, and in commands between crawls.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from searchcrawl import clock
from searchcrawl.cache.segment import StoredPage
from searchcrawl.codes import WITH_DOCUMENT, Code
from searchcrawl.commit import resolution
from searchcrawl.commit.decide import Group, build_answered_key, build_key
from searchcrawl.commit.resolution import Resolution
from searchcrawl.items import Document, Page, Place, copy_with
from searchcrawl.rules import lifecycle
from searchcrawl.sources.secrets import redact
from searchcrawl.store import batch_table
from searchcrawl.store.documents import document_table, duplicate_key_table, former_table, shared_copy_table
from searchcrawl.store.documents.document_table import DocumentUpdate
from searchcrawl.store.documents.duplicate_key_table import DuplicateKeys, KeyedDocument
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.states import DocumentState, FetchState, Leaving
from searchcrawl.store.urls import url_table


def write_documents(
    transaction: Transaction, source_id: int, group: Group, places: Mapping[int, Place], *, canonicals: bool = True
) -> None:
    """Writes the documents of a group and resolves their duplicates; ``places`` are those of the new records.

    Without ``canonicals`` no document of the source names another URL as canonical. Adds the results to
    ``group.settled`` and to its counters.
    """
    before = duplicate_key_table.load(transaction, _find_known(group))
    stored = [_build_row(document, places, group.bare) for document in group.stored]
    document_table.store(transaction, source_id, stored)
    group.restored = former_table.restore(transaction, group.back, readable=group.readable)
    duplicate_key_table.set_keys(transaction, "canonical_key", group.canonicals)
    duplicate_key_table.set_keys(transaction, "display_key", group.displays)
    duplicate_key_table.set_keys(transaction, "answered_key", group.answered)
    document_table.confirm(transaction, group.confirmed)
    document_table.note_parts(transaction, group.incomplete)
    _mark_evidence(transaction, group)
    codes = document_table.find_codes(transaction, [visit.url_id for visit in group.unchanged])
    group.settled.extend(
        copy_with(visit, code=codes.get(visit.url_id, 200), rule=None, keep_rule=True, error=None)
        for visit in group.unchanged
    )
    after = {
        document.claim.url_id: _build_keyed(document, row)
        for document, row in zip(group.stored, stored, strict=True)
        if document.claim.url_id not in before
    }
    # Of a known document something may have been kept.
    after |= duplicate_key_table.load(transaction, before.keys())
    for url_id in group.new_bodies:
        # In a forced recrawl all bodies count as new: documents that came out as before are no change.
        if before.get(url_id) == after.get(url_id):
            before.pop(url_id, None)
            after.pop(url_id, None)
    lost = _resolve_duplicates(transaction, source_id, group, before, after, canonicals=canonicals)
    lost |= document_table.find_lost(transaction, [visit.url_id for visit in group.unchanged])
    _fetch_again(transaction, group, lost)
    _forget_rejections(transaction, group)


def _mark_evidence(transaction: Transaction, group: Group) -> None:
    for evidence in set(group.hidden.values()):
        hidden = [url_id for url_id, text in group.hidden.items() if text == evidence]
        document_table.mark_evidence(transaction, hidden, evidence, Leaving.FAILED)
    if not group.with_evidence:
        return
    rows = set(group.with_evidence)
    by_evidence: dict[str, list[int]] = {}
    for visit in group.settled:
        if visit.url_id in rows:
            by_evidence.setdefault(lifecycle.describe_evidence(visit.code, visit.rule), []).append(visit.url_id)
    for evidence, url_ids in by_evidence.items():
        document_table.mark_evidence(transaction, url_ids, evidence)


def _forget_rejections(transaction: Transaction, group: Group) -> None:
    """Forgets the rejected removals of copies that are copies no longer, or others than they were."""
    rejected = {
        document.claim.url_id: document.claim.rejected
        for document in group.stored
        if document.claim.rejected not in {None, lifecycle.ORPHAN}
    }
    if rejected:
        codes = document_table.find_codes(transaction, list(rejected))
        document_table.forget_rejections(
            transaction, [url_id for url_id, evidence in rejected.items() if str(codes[url_id]) != evidence]
        )


def _find_known(group: Group) -> set[int]:
    """Ids of the rows that may have had a document before, and in which something is different now."""
    # A row that was never fetched has no document.
    stored = {document.claim.url_id for document in group.stored if document.claim.code}
    return stored.union(
        group.with_evidence,
        group.hidden,
        group.recovered,
        group.canonicals,
        group.displays,
        group.new_bodies,
        group.back,
    )


def _resolve_duplicates(
    transaction: Transaction,
    source_id: int,
    group: Group,
    before: Mapping[int, KeyedDocument],
    after: Mapping[int, KeyedDocument],
    *,
    canonicals: bool,
) -> set[int]:
    """Decides which of several documents is indexed; returns the ids of those whose record is gone."""
    if not after:
        return set()
    found = resolution.resolve(before, after, DuplicateKeys(transaction, source_id), canonicals=canonicals)
    lost = _write_results(transaction, source_id, found)
    codes = {change.url_id: change.code for change in found.changes}
    visited = {visit.url_id for visit in group.settled}
    group.settled[:] = [
        copy_with(visit, code=codes[visit.url_id], rule=None)
        if visit.url_id in codes and visit.code in WITH_DOCUMENT
        else visit
        for visit in group.settled
    ]
    url_table.set_codes(transaction, {row: code for row, code in codes.items() if row not in visited})
    group.counts["duplicates"] += len(found.duplicates)
    group.counts["non_indexable"] += sum(1 for code in codes.values() if code == Code.DISPLAY_URL_CLASH)
    return lost


def _write_results(transaction: Transaction, source_id: int, found: Resolution) -> set[int]:
    duplicate_key_table.set_results(transaction, found.changes)
    duplicate_key_table.move_duplicates(transaction, source_id, found.moved)
    own, foreign = shared_copy_table.split_foreign(transaction, source_id, found.resend)
    shared_copy_table.add_dues(transaction, foreign)
    lost = set(document_table.send_again(transaction, own))
    return lost | {change.url_id for change in found.changes if change.state == DocumentState.RECORD_LOST}


def resolve_again(transaction: Transaction, source_id: int, before: Mapping[int, KeyedDocument]) -> bool:
    """Resolves the duplicates of documents against which something was noted, or no longer, without a visit.

    ``before`` is what they were. Returns whether another document is to be sent in place of one.
    """
    if not before:
        return False
    after = duplicate_key_table.load(transaction, before.keys())
    found = resolution.resolve(before, after, DuplicateKeys(transaction, source_id))
    lost = _write_results(transaction, source_id, found)
    url_table.set_codes(transaction, {change.url_id: change.code for change in found.changes})
    batch_table.fetch_again(transaction, sorted(lost))
    return bool(found.changes or found.resend)


def _fetch_again(transaction: Transaction, group: Group, lost: set[int]) -> None:
    """Makes rows due whose documents belong in the index and have no record, including rows of this group."""
    if not lost:
        return
    batch_table.fetch_again(transaction, sorted(lost))
    group.settled[:] = [
        copy_with(visit, fetch_state=FetchState.TODO, due_ms=0) if visit.url_id in lost else visit
        for visit in group.settled
    ]


def build_record(document: Document) -> StoredPage:
    """Builds the record of a document for the cache."""
    page, cached = document.page or Page(), document.same_answer
    fallback = page.fallback
    # An attribute is one value, or a list.
    attributes = {name: values[0] if len(values) == 1 else list(values) for name, values in page.attributes}
    return StoredPage(
        url=document.claim.url,
        status=200,
        headers=tuple((name, redact(value.decode("latin-1")).encode("latin-1")) for name, value in document.headers),
        body=document.body,
        fetched_at=document.fetched_at,
        base_url=redact(document.base_url) if document.base_url != document.claim.url else None,
        record=b"" if cached is None else cached.record,
        record_id="" if cached is None else cached.record_id,
        fields={
            "title": page.title,
            "content": page.text,
            "description": page.description,
            "author": page.author,
            "subject": page.subject,
            "language": page.language,
            **({"languages": list(page.languages)} if page.other_languages else {}),
            **({"language_guess": str(page.language_guess)} if page.language_guess is not None else {}),
            **({"modified": page.modified} if page.modified else {}),
            **({"whole_digest": page.whole_digest} if page.whole_digest else {}),
            **({"headings": page.headings, "naming": page.naming} if page.headings else {}),
            **({"fallback": [str(fallback.reason), fallback.left, fallback.of]} if fallback is not None else {}),
            **({"attributes": attributes} if attributes else {}),
            **({"access": [*page.access]} if page.access is not None else {}),
            **({"origin": document.origin} if document.origin is not None else {}),
        },
    )


def _build_row(document: Document, places: Mapping[int, Place], bare: Container[int]) -> DocumentUpdate:
    place = places.get(document.claim.url_id)
    return DocumentUpdate(
        url_id=document.claim.url_id,
        state=DocumentState.CACHED if place else DocumentState.NONE,
        code=document.code,
        segment=place.segment if place else None,
        record_offset=place.offset if place else None,
        response_bytes=place.response_bytes if place else None,
        fields_bytes=place.fields_bytes if place else None,
        body_digest=document.body_digest,
        fields_digest=document.fields_digest,
        content_digest=document.content_digest if place else None,
        read_version=document.claim.version or None,
        copy_digest=document.copy_digest,
        url_fit=document.url_fit,
        mimetype=document.mimetype,
        content_length=document.body_bytes,
        etag=document.etag,
        last_modified=document.last_modified,
        last_changed_ms=clock.to_ms(document.fetched_at),
        canonical_key=build_key(document.canonical),
        display_key=build_key(document.display_url),
        answered_key=build_answered_key(document),
        unavailable_ms=None if document.page is None else document.page.unavailable_ms,
        rendered=document.rendered,
        parts=document.parts,
        bare=1 if document.claim.url_id in bare else None,
        # Most pages that may not be indexed never were.
        evidence=None
        if place or not document.claim.code
        else lifecycle.describe_evidence(document.code, document.rule),
    )


def _build_keyed(document: Document, row: DocumentUpdate) -> KeyedDocument:
    """The document with its duplicate keys, as the store has it now."""
    return KeyedDocument(
        url_id=row.url_id,
        url=document.claim.url,
        copy_digest=row.copy_digest,
        canonical_key=row.canonical_key,
        display_key=row.display_key,
        code=row.code,
        duplicate_of=None,
        state=int(row.state),
        leaving=0,
        cached=row.segment is not None,
        redirected=row.answered_key is not None,
        url_fit=row.url_fit,
    )
