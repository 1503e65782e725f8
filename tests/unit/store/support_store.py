"""Rows for tests of the tables, and what the tables say of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select, update

from searchcrawl import urls as identity
from searchcrawl.store import batch_table, host_table, removal_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.documents import document_table
from searchcrawl.store.documents.document_table import Confirmed, DocumentUpdate
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.removal_table import Before
from searchcrawl.store.run_schema import leases
from searchcrawl.store.runs import run_table
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.states import DocumentState, FetchState
from searchcrawl.store.urls import url_table
from searchcrawl.store.urls.url_table import NewUrl, Settled

SOURCE: Final = 1
NOW_MS: Final = 1_000_000


@contextmanager
def open_store(folder: Path, url: str = "sqlite:///store.db") -> Iterator[Database]:
    """A store with one source."""
    with closing(Database(url, folder)) as database:
        assert database.write(run_table.find_or_add_source, "demo") == SOURCE
        yield database


def add(
    database: Database, names: Sequence[str], *, depth: int = 1, host: str = "a.test:80", **values: Any
) -> list[int]:
    """Admits rows ``http://HOST/NAME``; their ids."""
    with database.write_once() as transaction:
        host_id = host_table.find_or_add(transaction, [host])[host]
        rows = [
            NewUrl(
                key=identity.key(f"http://{host}/{name}"),
                url=f"http://{host}/{name}",
                host_id=host_id,
                depth=depth,
                **values,
            )
            for name in names
        ]
        ids = url_table.add(transaction, SOURCE, rows, NOW_MS)
    return [ids[row.key] for row in rows]


def claim(
    database: Database, *, limit: int = 100, horizon_ms: int = NOW_MS, forced: bool = False, host: int = 1
) -> list[int]:
    """Claims rows; their ids in the order in which they are handed out."""
    claims = database.write(
        url_table.claim, SOURCE, host, limit=limit, now_ms=NOW_MS, horizon_ms=horizon_ms, forced=forced
    )
    return [one.url_id for one in claims]


def claim_again(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Has rows be under way, whatever they were."""
    transaction.execute(update(urls).where(urls.c.id.in_(url_ids)).values(fetch_state=int(FetchState.FETCHING)))


def settle(database: Database, url_ids: Sequence[int], **values: Any) -> None:
    """Ends visits, well unless ``values`` say otherwise."""
    given = {"code": 200, "due_ms": NOW_MS, "fetched_ms": NOW_MS, **values}
    with database.write_once() as transaction:
        claim_again(transaction, url_ids)
        url_table.settle(transaction, [Settled(url_id=url_id, **given) for url_id in url_ids])


def store(database: Database, url_ids: Sequence[int], *, body: bytes | None = None, **values: Any) -> None:
    """Writes documents in the cache, each with a body and text of its own unless one is given."""
    database.write(document_table.store, SOURCE, [_stored(url_id, body, values) for url_id in url_ids])


def _stored(url_id: int, body: bytes | None, values: dict[str, Any]) -> DocumentUpdate:
    given: dict[str, Any] = {
        "state": DocumentState.CACHED,
        "code": 200,
        "segment": 1,
        "record_offset": 100 * url_id,
        "response_bytes": 60,
        "fields_bytes": 40,
        "body_digest": body or b"body %d" % url_id,
        "fields_digest": b"fields",
        "copy_digest": body or b"body %d" % url_id,
        "mimetype": "text/html",
        "content_length": 1000,
        "etag": '"1"',
        "last_modified": None,
        "last_changed_ms": NOW_MS,
    }
    return DocumentUpdate(url_id=url_id, **{**given, **values})


def age_leases(database: Database, milliseconds: int) -> None:
    """Makes the last beats so much older, by all clocks."""
    with database.write_once() as transaction:
        beats = {name: leases.c[name] - milliseconds for name in ("renewed_ms", "beat_ms")}
        transaction.execute(update(leases).values(beats))


def row(database: Database, url_id: int) -> Any:
    """The row of the URL table."""
    with database.read_once() as transaction:
        return transaction.execute(select(urls).where(urls.c.id == url_id)).one()


def document(database: Database, url_id: int) -> Any:
    """The row of the documents."""
    with database.read_once() as transaction:
        return transaction.execute(select(documents).where(documents.c.url_id == url_id)).one()


def states(database: Database, url_ids: Sequence[int]) -> list[DocumentState]:
    """Where documents stand."""
    return [DocumentState(document(database, url_id).state) for url_id in url_ids]


def fetch_states(database: Database, url_ids: Sequence[int]) -> list[FetchState]:
    """Where rows stand."""
    return [FetchState(row(database, url_id).fetch_state) for url_id in url_ids]


def cached(database: Database, *names: str, **values: Any) -> list[int]:
    """Documents that were fetched."""
    ids = add(database, names)
    settle(database, ids)
    store(database, ids, **values)
    return ids


def sealed(database: Database, *names: str, **values: Any) -> tuple[list[int], SealedBatch]:
    """Documents in a delivery."""
    ids = cached(database, *names, **values)
    batch = database.write(batch_table.seal_documents, SOURCE, 1, NOW_MS)
    assert batch is not None
    return ids, batch


def present(database: Database, *names: str, **values: Any) -> list[int]:
    """Documents that the index got in one delivery."""
    ids, batch = sealed(database, *names, **values)
    database.write(batch_table.note_accepted, batch, ids)
    return ids


def mark(database: Database, ids: Sequence[int]) -> None:
    """Their pages are gone."""
    database.write(document_table.mark_evidence, ids, "404")


def confirm(database: Database, ids: Sequence[int], *, send_again: bool = False) -> None:
    """Their pages are there, as they were."""
    database.write(document_table.confirm, [Confirmed(url_id=url_id, send_again=send_again) for url_id in ids])


def candidates(database: Database) -> list[int]:
    """The documents that leave at the end of the run."""
    return [row.url_id for row in database.read(removal_table.find_candidates, SOURCE, before=Before(0, 0))]
