"""What the documents of a host have in common, frozen with a version: menus and titles (C8), the usual language (C9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from sqlalchemy import Column, Table, delete, select, update

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import upsert_rows, write_parts
from searchcrawl.store.schema import host_blocks, host_languages, host_titles

T = TypeVar("T")


class Frozen(NamedTuple, Generic[T]):
    """What is frozen of a host; ``previous``: what was, while documents that differ are still to be found."""

    host: str
    version: int
    sample: bytes
    value: T
    previous: T | None


class FrozenTable(Generic[T]):
    """A table with a row for each host of a source; ``value`` is the name of the column with what is frozen."""

    def __init__(self, table: Table, value: str) -> None:
        self._table = table
        self._value: Column[Any] = table.c[value]

    def load(self, transaction: Transaction, source_id: int) -> dict[str, Frozen[T]]:
        """What is frozen, by host."""
        table = self._table
        columns = table.c.host, table.c.version, table.c.sample, self._value, table.c.previous
        query = select(*columns).where(table.c.source_id == source_id)
        return {row[0]: Frozen(*row) for row in transaction.execute(query)}

    def load_values(self, transaction: Transaction, source_id: int) -> dict[str, T]:
        """What is frozen, by host; hosts of which nothing is known are left out."""
        query = select(self._table.c.host, self._value).where(self._table.c.source_id == source_id)
        return {host: value for host, value in transaction.execute(query) if value}

    def load_changed(self, transaction: Transaction, source_id: int) -> dict[str, tuple[T, T]]:
        """What was and what is frozen, by host, while documents that differ are still to be found."""
        table = self._table
        query = select(table.c.host, table.c.previous, self._value)
        query = query.where(table.c.source_id == source_id, table.c.previous.is_not(None))
        return {host: (previous, value) for host, previous, value in transaction.execute(query)}

    def find(self, transaction: Transaction, source_id: int, host: str) -> T | None:
        """What is frozen of a host."""
        table = self._table
        query = select(self._value).where(table.c.source_id == source_id, table.c.host == host)
        return transaction.execute(query).scalar()

    def freeze(self, transaction: Transaction, source_id: int, rows: Sequence[Frozen[T]]) -> None:
        """Puts this in the place of what was frozen of these hosts."""
        value = self._value.name
        changes = ("version", "sample", value, "previous")
        values = [
            {
                "source_id": source_id,
                "host": row.host,
                "version": row.version,
                "sample": row.sample,
                value: row.value,
                "previous": row.previous,
            }
            for row in rows
        ]
        upsert_rows(transaction, self._table, ("source_id", "host"), values, changes)

    def settle(self, transaction: Transaction, source_id: int) -> None:
        """Notes that all documents that differ are to be sent again; hosts of which nothing is left are forgotten."""
        table = self._table
        here = table.c.source_id == source_id
        transaction.execute(update(table).where(here, table.c.previous.is_not(None)).values(previous=None))
        transaction.execute(delete(table).where(here, table.c.sample == b""))

    def forget(self, transaction: Transaction, source_id: int, hosts: Sequence[str]) -> None:
        """Forgets what is frozen of hosts."""
        table = self._table
        write_parts(transaction, delete(table).where(table.c.source_id == source_id), table.c.host, hosts)


#: The blocks that stand on most pages, packed (``rules.host_texts``).
BLOCKS: Final[FrozenTable[bytes]] = FrozenTable(host_blocks, "blocks")
#: The language that most documents have; empty: none.
LANGUAGES: Final[FrozenTable[str]] = FrozenTable(host_languages, "language")
#: The titles that pages share, packed (``rules.host_texts``).
TITLES: Final[FrozenTable[bytes]] = FrozenTable(host_titles, "titles")
