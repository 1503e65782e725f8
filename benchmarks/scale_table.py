"""Synthetic tables, as a finished first run would leave them; filled in bulk, past our own modules.

Of 20 URLs 13 are indexed documents, one is a copy, one is gone (404), four lie outside the boundary, one is moved.
Each document has 75 links. All keys are the real ones of their URLs: 64 bits without any order.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from searchcrawl import clock, urls
from searchcrawl.codes import Code
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.states import DocumentState, FetchState
from searchcrawl.store.urls import link_table

SOURCE: Final = "scale"
SOURCE_ID: Final = 1
LINKS_A_PAGE: Final = 75
_ROWS_A_TRANSACTION: Final = 100_000
_HOUR_MS: Final = 3_600_000
#: In SQLite only: what fits into memory is written in order.
_FILLING_CACHE: Final = "PRAGMA cache_size = -6000000"

_URL_COLUMNS: Final = (
    "id",
    "source_id",
    "key",
    "url",
    "host_id",
    "depth",
    "referrer_id",
    "fetch_state",
    "code",
    "rule",
    "due_ms",
    "first_seen_ms",
    "last_fetched_ms",
)
_DOCUMENT_COLUMNS: Final = (
    "url_id",
    "source_id",
    "state",
    "indexed_version",
    "batch_id",
    "segment",
    "record_offset",
    "response_bytes",
    "fields_bytes",
    "body_digest",
    "fields_digest",
    "copy_digest",
    "mimetype",
    "content_length",
    "etag",
    "last_modified",
    "last_changed_ms",
    "code",
    "duplicate_of",
)

Row = tuple[Any, ...]
#: Gives the code that the row of a number ended with.
Kind = Callable[[int], int]


def host_count(size: int) -> int:
    """20 hosts for small tables, 500 for large ones."""
    return min(max(size // 2000, 20), 500)


def url_of(number: int, hosts: int) -> str:
    """The URL of a row among those of so many hosts, about 80 characters."""
    host = number % hosts
    section, topic = number % 97, number % 1013
    return f"http://www{host}.site.example/section-{section}/topic-{topic}/a-page-with-a-name-{number}.html"


def kind_of(number: int) -> int:
    """The code that the row of a number ended with."""
    place = number % 20
    if place < 13:
        return 200
    if place < 14:
        return int(Code.DUPLICATE)
    if place < 15:
        return 404
    return int(Code.OUTSIDE_BOUNDARY if place < 19 else Code.MOVED)


def fill(database: Database, size: int, *, hosts: int = 0, documents_alone: bool = False) -> None:
    """Writes a source of ``size`` URLs into an empty store; ``documents_alone``: all are documents, without links."""
    hosts = hosts or host_count(size)
    kind = (lambda _number: 200) if documents_alone else kind_of
    now_ms = clock.now_ms()
    with database.write_once() as transaction:
        put = _copied if transaction.dialect.name == "postgresql" else _inserted
        if put is _inserted:
            transaction.exec_driver_sql(_FILLING_CACHE)
        _put_rest(transaction, put, hosts, now_ms)
    for start in range(1, size + 1, _ROWS_A_TRANSACTION):
        numbers = range(start, min(start + _ROWS_A_TRANSACTION, size + 1))
        pages = [number for number in numbers if kind(number) in (200, Code.DUPLICATE)]
        with database.write_once() as transaction:
            put(transaction, "urls", _URL_COLUMNS, _url_rows(numbers, hosts, now_ms, kind))
            put(transaction, "documents", _DOCUMENT_COLUMNS, _document_rows(pages, now_ms, kind))
            if not documents_alone:
                put(transaction, "outlinks", ("url_id", "links"), _outlink_rows(pages, size))
    database.write(_finish)


def _put_rest(transaction: Transaction, put: Callable[..., None], hosts: int, now_ms: int) -> None:
    put(transaction, "sources", ("id", "name"), [(SOURCE_ID, SOURCE)])
    named = ((number + 1, f"www{number}.site.example:80") for number in range(hosts))
    put(transaction, "hosts", ("id", "name"), named)
    columns = ("source_id", "kind", "started_ms", "horizon_ms", "ended_ms", "end_reason", "exit_code", "counts")
    earlier_ms = now_ms - 24 * _HOUR_MS
    row = (SOURCE_ID, "initial", earlier_ms, earlier_ms, now_ms - 20 * _HOUR_MS, "finished", 0, "{}")
    put(transaction, "runs", columns, [row])


def _url_rows(numbers: Iterable[int], hosts: int, now_ms: int, kind: Kind) -> Iterator[Row]:
    for number in numbers:
        url, code = url_of(number, hosts), kind(number)
        refused = code == Code.OUTSIDE_BOUNDARY
        fetched_ms = now_ms - 22 * _HOUR_MS + number % _HOUR_MS
        yield (
            number, SOURCE_ID, urls.key(url), url, number % hosts + 1, 1 + number % 9,
            number // LINKS_A_PAGE or None, int(FetchState.SETTLED), code,
            "scope.include_hosts: example" if refused else None,
            None if refused else fetched_ms + 1, fetched_ms, None if refused else fetched_ms,
        )  # fmt: skip


def _document_rows(numbers: Iterable[int], now_ms: int, kind: Kind) -> Iterator[Row]:
    for number in numbers:
        copy = kind(number) == Code.DUPLICATE
        # A copy has the bytes and the text of the page before it.
        body = hashlib.sha256(str(number - 1 if copy else number).encode()).digest()
        fields = hashlib.sha256(body).digest()
        state = DocumentState.WITHHELD if copy else DocumentState.PRESENT
        yield (
            number, SOURCE_ID, int(state), None if copy else now_ms - 20 * _HOUR_MS, None, 1 + number // 10_000,
            number % 10_000 * 8000, 8000, 3000, body, fields, fields, "text/html", 30_000,
            f'"{number:x}-5f3c"', "Sat, 01 Feb 2025 10:00:00 GMT", now_ms - 22 * _HOUR_MS,
            int(Code.DUPLICATE) if copy else 200, number - 1 if copy else None,
        )  # fmt: skip


def _outlink_rows(numbers: Iterable[int], size: int) -> Iterator[Row]:
    # Some near, some anywhere; a hundred sets in turn are enough to be of the right length.
    chance = random.Random(size)
    blobs = []
    for _ in range(100):
        near = chance.randrange(size)
        targets = [(near + chance.randrange(2000)) % size + 1 for _ in range(LINKS_A_PAGE - 15)]
        blobs.append(link_table.encode(targets + [chance.randrange(1, size + 1) for _ in range(15)]))
    for number in numbers:
        yield (number, blobs[number % len(blobs)])


def _inserted(transaction: Transaction, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    marks = ", ".join("?" * len(columns))
    connection: Any = transaction.connection.driver_connection
    connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)


def _copied(transaction: Transaction, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    connection: Any = transaction.connection.driver_connection
    with connection.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _finish(transaction: Transaction) -> None:
    if transaction.dialect.name == "postgresql":
        for table in ("urls", "hosts", "sources"):
            query = f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"
            transaction.exec_driver_sql(query)
        # Autovacuum would do it within the minute.
        transaction.exec_driver_sql("ANALYZE")
