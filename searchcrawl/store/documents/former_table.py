"""What known documents were before a run changed them, so that they can be put back (docs: removals).

The rows are those of one run and of the runs that it continues. Each is written in the transaction that changes its
document; the first change of a document counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Row, and_, bindparam, delete, or_, select, update

from searchcrawl.codes import COPIES
from searchcrawl.items import Place
from searchcrawl.store.documents.document_events import PUT_BACK
from searchcrawl.store.documents.presence import is_in
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import read_parts, set_rows, upsert_rows, write_parts, write_rows
from searchcrawl.store.schema import DOCUMENTS_WITH_URLS, KEPT, PLACE, documents, former_documents, outlinks, urls
from searchcrawl.store.statements import split
from searchcrawl.store.states import AT_HAND, MOVING, SHOWN, UNSENT, DocumentState
from searchcrawl.store.urls import link_table, url_classes

#: Of so many changed documents of a source, the newest, the earlier version is known.
MOST: Final = 10_000
#: The most rows that one transaction deletes.
_PART: Final = 5_000


class FormerDocument(NamedTuple):
    """A document that was changed: where the records of both versions are, None without one, and their bytes.

    ``restored``: it was put back.
    """

    url_id: int
    url: str
    before: Place | None
    now: Place | None
    before_bytes: int
    now_bytes: int
    restored: bool


class Restored(NamedTuple):
    """A document that was put back, and the run that had changed it; ``was_copy``: as a copy of another one.

    ``failed_runs`` and ``failures`` are what its row said before.
    """

    url_id: int
    run_id: int
    was_copy: bool
    failed_runs: int
    failures: str | None


def keep(transaction: Transaction, source_id: int, run_id: int, sketches: Mapping[int, bytes]) -> None:
    """Keeps documents as they are, before they are changed; ``sketches`` are their new texts by row id."""
    known = or_(documents.c.indexed_version.is_not(None), is_in(AT_HAND))
    columns = [documents.c[name] for name in ("url_id", "state", "indexed_version", "batch_id", *KEPT)]
    rows = []
    for part in split(list(sketches)):
        # Such a document is known as it is now.
        back = and_(former_documents.c.url_id.in_(part), former_documents.c.restored == 1)
        transaction.execute(delete(former_documents).where(back))
        query = (
            select(
                *columns, urls.c.failed_runs, urls.c.failures, outlinks.c.links, outlinks.c.texts.label("link_texts")
            )
            .select_from(DOCUMENTS_WITH_URLS)
            .outerjoin(outlinks, outlinks.c.url_id == documents.c.url_id)
            .where(documents.c.url_id.in_(part), known)
        )
        rows += [
            {**row._mapping, "source_id": source_id, "run_id": run_id, "sketch": sketches[row.url_id]}
            for row in transaction.execute(query)
        ]
    upsert_rows(transaction, former_documents, ("url_id",), rows, ("sketch",))


def note_held(transaction: Transaction, source_id: int, run_id: int, sketches: Mapping[int, bytes]) -> None:
    """Notes new texts that were not taken, by row id: as if their documents had been changed and put back."""
    held = {"source_id": source_id, "run_id": run_id, "restored": 1, "state": int(DocumentState.NONE)}
    rows = [{**held, "url_id": url_id, "sketch": sketch} for url_id, sketch in sketches.items()]
    upsert_rows(transaction, former_documents, ("url_id",), rows, ("sketch",))


def forget(transaction: Transaction, source_id: int, *, until_run: int) -> bool:
    """Forgets what runs up to ``until_run`` changed, a part at a time; returns whether there may be more."""
    here = former_documents.c.source_id == source_id
    old = select(former_documents.c.id).where(here, former_documents.c.run_id <= until_run).limit(_PART)
    return transaction.execute(delete(former_documents).where(former_documents.c.id.in_(old))).rowcount == _PART


def forget_oldest(transaction: Transaction, source_id: int) -> None:
    """Forgets all but the newest MOST rows, a part at a time."""
    here = former_documents.c.source_id == source_id
    number = former_documents.c.id
    newest = select(number).where(here).order_by(number.desc()).offset(MOST).limit(_PART)
    transaction.execute(delete(former_documents).where(number.in_(newest)))


def load_sketches(transaction: Transaction, source_id: int, *, limit: int) -> list[tuple[int, str, bytes]]:
    """Id and URL of the changed documents and the sketches of their new texts, the newest ``limit``, oldest first."""
    query = (
        select(former_documents.c.url_id, urls.c.url, former_documents.c.sketch)
        .join(urls, urls.c.id == former_documents.c.url_id)
        .where(former_documents.c.source_id == source_id)
        .order_by(former_documents.c.id.desc())
        .limit(limit)
    )
    return [(row.url_id, row.url, row.sketch) for row in transaction.execute(query)][::-1]


def find_changes(transaction: Transaction, url_ids: Sequence[int]) -> list[FormerDocument]:
    """Changed documents with both of their versions; those without a kept one are left out."""
    found: list[FormerDocument] = []
    names = (*PLACE, "content_length")
    former = [former_documents.c[name].label(f"former_{name}") for name in (*names, "restored")]
    query = (
        select(urls.c.id, urls.c.url, *(documents.c[name] for name in names), *former)
        .select_from(urls.join(documents, documents.c.url_id == urls.c.id))
        .join(former_documents, former_documents.c.url_id == urls.c.id)
    )
    for row in read_parts(transaction, query, urls.c.id, url_ids):
        versions = [
            (_read_place(row, "former_"), row.former_content_length),
            (_read_place(row, ""), row.content_length),
        ]
        (before, before_bytes), (now, now_bytes) = versions[::-1] if row.former_restored else versions
        found.append(FormerDocument(row.id, row.url, before, now, before_bytes, now_bytes, bool(row.former_restored)))
    return found


def find_earlier(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, tuple[Place | None, int]]:
    """Where the records of documents that are about to be changed are, and the bytes of their pages, by row id.

    Of a document that was changed before, the kept version counts.
    """
    found: dict[int, tuple[Place | None, int]] = {}
    for table, conditions in ((documents, ()), (former_documents, (former_documents.c.restored == 0,))):
        query = select(*(table.c[name] for name in ("url_id", *PLACE, "content_length"))).where(*conditions)
        for row in read_parts(transaction, query, table.c.url_id, url_ids):
            found[row.url_id] = (_read_place(row, ""), row.content_length)
    return found


def _read_place(row: Row[Any], prefix: str) -> Place | None:
    return Place.read(getattr(row, prefix + name) for name in PLACE)


_SET: Final = (
    update(documents)
    .where(documents.c.url_id == bindparam("row_id"))
    .values(
        **{name: bindparam(f"old_{name}", type_=documents.c[name].type) for name in KEPT},
        **PUT_BACK.values,
    )
)


def restore(transaction: Transaction, url_ids: Sequence[int], *, readable: Collection[int]) -> list[Restored]:
    """Puts documents back as they were; ``readable`` are those whose old record the cache still has.

    Their duplicates have to be resolved afterwards, as those of new documents.
    """
    names = ("state", "indexed_version", "code", "content_length", *PLACE)
    now = [documents.c[name].label(f"now_{name}") for name in names]
    restored: list[Restored] = []
    for part in split(url_ids):
        query = select(former_documents, *now).join(documents, documents.c.url_id == former_documents.c.url_id)
        here = and_(former_documents.c.url_id.in_(part), former_documents.c.restored == 0)
        rows = list(transaction.execute(query.where(here)))
        states = {row.url_id: _choose_state(row, has_record=row.url_id in readable) for row in rows}
        back = [(row, state) for row in rows if (state := states[row.url_id]) is not None]
        write_rows(transaction, _SET, [_build_values(row, state, readable) for row, state in back])
        # The index has the new text, and nobody has the old one any more: the next visit must count as a change.
        unknown = update(documents).values(etag=None, last_modified=None, body_digest=None)
        write_parts(
            transaction, unknown, documents.c.url_id, [row.url_id for row in rows if states[row.url_id] is None]
        )
        links = {row.url_id: {"links": row.links, "texts": row.link_texts} for row in rows if row.links is not None}
        set_rows(transaction, outlinks.c.url_id, links)
        # Those of the other text say nothing of this one.
        link_table.forget_unfollowed(transaction, [row.url_id for row in rows])
        marks = {row.url_id: _build_mark(row, states[row.url_id]) for row in rows}
        set_rows(transaction, former_documents.c.url_id, marks)
        restored += [
            Restored(row.url_id, row.run_id, row.now_code in COPIES, row.failed_runs, row.failures) for row in rows
        ]
    return restored


def _choose_state(row: Row[Any], *, has_record: bool) -> DocumentState | None:
    """The state of a document that is put back; None where the index has, or may have, the new text alone."""
    moves = row.now_state in MOVING
    unsent = not moves and row.now_indexed_version == row.indexed_version
    if unsent and row.indexed_version and row.state == DocumentState.PRESENT:
        return DocumentState.PRESENT
    if has_record:
        return DocumentState.CACHED
    return None if row.now_state in SHOWN - UNSENT else DocumentState.RECORD_LOST


def _build_mark(row: Row[Any], state: DocumentState | None) -> dict[str, Any]:
    """What took the place of the document; where nothing could be put back, that is still there."""
    taken = "" if state is None else "now_"
    return {"restored": 1, **{name: getattr(row, f"{taken}{name}") for name in (*PLACE, "content_length")}}


def _build_values(row: Row[Any], state: DocumentState, readable: Collection[int]) -> dict[str, Any]:
    values = {f"old_{name}": getattr(row, name) for name in KEPT}
    if row.url_id not in readable:
        values |= {f"old_{name}": None for name in PLACE}
    batch = row.batch_id if state == DocumentState.PRESENT else None
    return {**values, "row_id": row.url_id, "new_state": int(state), "new_batch": batch}


def note_failed(
    transaction: Transaction, rows: Mapping[int, tuple[int, str]], *, code: int, rule: str, error: str
) -> None:
    """Says of the rows of documents that were put back that the visit failed; they are due as they were.

    ``rows`` has the failed runs by id, as numbers and as rows keep them.
    """
    ended = {"code": code, "rule": rule, "error": error}
    failed = {
        row_id: {**ended, "failed_runs": failed_runs, "failures": failures}
        for row_id, (failed_runs, failures) in rows.items()
    }
    with url_classes.watch(transaction, list(rows)):
        set_rows(transaction, urls.c.id, failed)
