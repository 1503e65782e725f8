"""What differs between the databases that can be the store: each has a subclass of ``Dialect`` in a module of its own.

To add a database, write that module, with an instance named ``DIALECT``, and add it to ``_MODULES``. The address is
allowed in ``sources/project.py``. No other module tests which database it has: it calls ``dialect_of(transaction)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Column, ColumnElement, Connection, Engine, Insert, Select, Table
from sqlalchemy.exc import DBAPIError

from searchcrawl.exceptions import ConfigurationError, StoreError

#: By the name of the backend in ``store.url``; only the module of the database in use is imported.
_MODULES: Final = {
    "postgresql": "searchcrawl.store.engine.postgresql_dialect",
    "sqlite": "searchcrawl.store.engine.sqlite_dialect",
}

#: Gets the columns of the row that could not be inserted; returns the new values of the existing row by column.
Changes = Callable[[Any], Mapping[str, Any]]


class Dialect(ABC):
    """What the store needs to know of one kind of database; its SQL is written by SQLAlchemy's own dialect."""

    #: builds an INSERT of this database, which has the clause ON CONFLICT
    insert: Callable[[Table], Any]

    @abstractmethod
    def build_engine(self, url: URL, root: Path) -> Engine:
        """Builds the engine for ``url``; relative paths start at ``root``. Nothing is connected yet.

        Raises StoreError, or ConfigurationError where the driver is missing.
        """

    @abstractmethod
    def build_reader_and_writer(self, engine: Engine) -> tuple[Engine, Engine]:
        """Returns the engine with the options of reading transactions, and with those of writing ones."""

    @abstractmethod
    def find_folder(self, url: URL) -> Path | None:
        """The folder of the database file at the URL of an engine; None where the database is no file."""

    @abstractmethod
    def lock_creation(self, transaction: Connection) -> None:
        """Waits until no other process makes the tables of this database."""

    @abstractmethod
    def read_clock_ms(self, transaction: Connection) -> int:
        """The present, in milliseconds since 1970, by the clock that all processes at this database share."""

    @abstractmethod
    def find_transaction_number(self, transaction: Connection) -> str | None:
        """The number of a writing transaction; None where a transaction whose commit failed was certainly not made."""

    def find_transaction_status(self, transaction: Connection, number: str) -> str | None:
        """How an earlier transaction ended: "committed", "aborted" or "in progress"; None if it is not known any more.

        Called only for numbers that ``find_transaction_number`` returned.
        """
        raise NotImplementedError

    @abstractmethod
    def classify_error(self, error: DBAPIError) -> type[StoreError]:
        """Returns StoreLocked or StoreAway where the same transaction may work later, else StoreError.

        A full disk, damage, missing tables or rights do not pass by themselves.
        """

    @abstractmethod
    def describe_error(self, cause: BaseException, url: URL | None) -> str:
        """The text of an error of the driver, without values of rows; ``url`` is that of the engine, once there is one."""

    def upsert(self, table: Table, key: Sequence[str], changes: Changes | None = None, where: Any = None) -> Insert:
        """Builds an INSERT that changes the existing row with the same ``key`` instead, if ``where`` is true for it.

        Without ``changes`` the existing row stays as it is. SQLite and PostgreSQL have it in the same form.
        """
        statement = self.insert(table)
        found: Insert = (
            statement.on_conflict_do_nothing(index_elements=key)
            if changes is None
            else statement.on_conflict_do_update(index_elements=key, set_=changes(statement.excluded), where=where)
        )
        return found

    def is_among(self, column: Column[Any], values: Sequence[Any]) -> ColumnElement[bool]:
        """``column IN (values)`` with parameters."""
        return column.in_(values)

    @abstractmethod
    def pick_of_each(self, wanted: str, pick: Callable[[ColumnElement[int]], Select[int]]) -> Select[int]:
        """The rows that ``pick`` finds for each of many numbers, the parameter ``wanted`` (see ``pack_numbers``).

        ``pick`` gets a number, and returns the query for some ids, the first ones in an order perhaps.
        """

    @abstractmethod
    def pack_numbers(self, numbers: Sequence[int]) -> Any:
        """Numbers as one parameter."""

    @abstractmethod
    def contains_bytes(self, column: Column[bytes], part: bytes) -> ColumnElement[bool]:
        """Whether ``part`` is somewhere in the bytes of the column."""

    @abstractmethod
    def collate_by_code_points(self, column: Column[str]) -> ColumnElement[str]:
        """The column as it is compared by code points; by default each database sorts text in an order of its own."""


def load_dialect(url: URL) -> Dialect:
    """The dialect for ``url``; raises ConfigurationError where there is none."""
    name = url.get_backend_name()
    if name not in _MODULES:
        known = " or ".join(sorted(_MODULES))
        raise ConfigurationError(
            "searchcrawl.toml", "store.url", f"must be the URL of {known} (got {url.render_as_string()})"
        )
    return _load(name)


def dialect_of(transaction: Connection) -> Dialect:
    """The dialect of the database of an open transaction."""
    return _load(transaction.dialect.name)


@cache
def _load(name: str) -> Dialect:
    found: Dialect = import_module(_MODULES[name]).DIALECT
    return found
