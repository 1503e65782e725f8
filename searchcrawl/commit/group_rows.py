"""What a group of visits leaves in the table of documents, copies included; within the group's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from searchcrawl import clock
from searchcrawl.cache.segment import Place, StoredPage
from searchcrawl.commit.decide import Group
from searchcrawl.dedup import survivor
from searchcrawl.items import Document, Page
from searchcrawl.store import batch_table, document_table, url_table
from searchcrawl.store.database import Transaction
from searchcrawl.store.document_table import StoredDocument
from searchcrawl.store.states import DocumentState, FetchState


def write(transaction: Transaction, source_id: int, group: Group, places: Mapping[int, Place]) -> None:
    """Writes the documents of a group and decides about copies; ``places`` are those of its records.

    Adds to ``group.settled`` and to its counters what comes of it.
    """
    touched = [document.claim.url_id for document in group.stored] + group.leaving
    digests, survivors = document_table.before(transaction, touched)
    revived, _ = document_table.before(transaction, group.revived)
    digests |= revived | {document.body_digest for document in group.stored if document.code == 200}
    document_table.store(transaction, source_id, [_stored(document, places) for document in group.stored])
    document_table.confirm(transaction, group.confirmed)
    document_table.mark_leaving(transaction, group.leaving)
    document_table.send_again(transaction, list(survivors))
    codes = document_table.codes(transaction, [visit.url_id for visit in group.restored])
    group.settled.extend(
        replace(visit, code=codes.get(visit.url_id, 200), rule=None, keep_rule=True, error=None)
        for visit in group.restored
    )
    lost = _settle_copies(transaction, source_id, group, digests)
    lost |= document_table.lost(transaction, [visit.url_id for visit in group.restored])
    _fetch_again(transaction, group, lost)


def _settle_copies(transaction: Transaction, source_id: int, group: Group, digests: set[bytes]) -> set[int]:
    """Decides which copies are indexed; those of them that the cache has no record of any more."""
    copies = document_table.copies(transaction, source_id, sorted(digests))
    changes = survivor.resolve(copies)
    if not changes:
        return set()
    document_table.set_copy(transaction, changes)
    codes = {change.url_id: change.code for change in changes}
    visited = {visit.url_id for visit in group.settled}
    group.settled[:] = [
        replace(visit, code=codes[visit.url_id]) if visit.url_id in codes else visit for visit in group.settled
    ]
    url_table.set_codes(transaction, {row: code for row, code in codes.items() if row not in visited})
    known = {copy.url_id for copy in copies if copy.duplicate_of is not None}
    group.counts["duplicates"] += sum(
        1 for change in changes if change.duplicate_of is not None and change.url_id not in known
    )
    without_record = {copy.url_id for copy in copies if not copy.cached}
    return {change.url_id for change in changes if change.duplicate_of is None and change.url_id in without_record}


def _fetch_again(transaction: Transaction, group: Group, lost: set[int]) -> None:
    """Has pages fetched whole whose documents are wanted and whose records are gone, also those of this group."""
    batch_table.lost_records(transaction, sorted(lost))
    url_table.reopen(transaction, lost)
    group.settled[:] = [
        replace(visit, fetch_state=FetchState.TODO, due_ms=0) if visit.url_id in lost else visit
        for visit in group.settled
    ]


def stored_page(document: Document) -> StoredPage:
    """What the cache keeps of a document."""
    page = document.page or Page()
    return StoredPage(
        url=document.claim.url,
        status=200,
        headers=document.headers,
        body=document.body,
        fetched_at=document.fetched_at,
        fields={
            "title": page.title,
            "content": page.text,
            "description": page.description,
            "author": page.author,
            "subject": page.subject,
            "language": page.language,
        },
    )


def _stored(document: Document, places: Mapping[int, Place]) -> StoredDocument:
    place = places.get(document.claim.url_id)
    return StoredDocument(
        url_id=document.claim.url_id,
        state=DocumentState.CACHED if place else DocumentState.NONE,
        code=document.code,
        segment=place.segment if place else None,
        record_offset=place.offset if place else None,
        response_bytes=place.response_bytes if place else None,
        fields_bytes=place.fields_bytes if place else None,
        body_digest=document.body_digest,
        fields_digest=document.fields_digest,
        mimetype=document.mimetype,
        content_length=len(document.body),
        etag=document.etag,
        last_modified=document.last_modified,
        last_changed_ms=clock.to_ms(document.fetched_at),
    )
