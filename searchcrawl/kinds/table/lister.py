"""Lists the rows of a table or query, each with its version (A1, E9).

What a run reads is one state of the database, and is written to a file first: a transaction stays open for as long as the
reading takes, and not for what is made of it. Rows come in the order in which the database has them, for an order by a
collation has several texts in one place.

With ``table.modified`` most runs read an increment: what was changed since the mark of the last run, or at its moment, and all
of what has a null there, of which nothing else tells that it has changed. The mark lies before the newest change that was seen, by as much as the oldest open transaction is old: what that writes may have
an older time, and is seen later. Versions are compared, so that what is read twice costs nothing.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import compress
from typing import Any, Final

import xxhash
from sqlalchemy import Connection, Row, Select, make_url

from searchcrawl import clock
from searchcrawl.codes import Code
from searchcrawl.kinds.table.config import TableTable
from searchcrawl.kinds.table.connecting import SQL_ERROR, DatabaseError, TableDatabase
from searchcrawl.kinds.table.identity import NoKey, build_key, find_container
from searchcrawl.kinds.table.statements import (
    Columns,
    is_changed_since,
    is_known,
    is_unknown,
    load_columns,
    read_clock,
    select_all,
    select_newest,
)
from searchcrawl.kinds.table.values import compute_digest, list_versions, read_moment, to_text
from searchcrawl.listing.model import MOST_ENTRIES, Entry, ListedPart, ListingEnd, Marks
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.temporary_files import PartFile

_HOUR_MS: Final = 3_600_000
#: Into so many parts the keys are divided, so that few are numbers of Python at once.
_SHARES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a lister notes for the next run.

    ``modified`` is where the next increment begins, as the database writes it, or, where it is no text to the driver
    (``is_text``), in ISO 8601; None: it has to read all keys. ``compared_ms`` is when that was done last. ``of`` changes with what the
    source file says of the table.
    """

    of: str
    compared_ms: int
    modified: str | None = None
    is_text: bool = True

    @classmethod
    def read(cls, text: str | None) -> Mark | None:
        """The mark in JSON; None for none, and for that of another release."""
        try:
            return None if text is None else cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    @property
    def value(self) -> str | datetime:
        """What the column is compared with."""
        return self.modified or "" if self.is_text else datetime.fromisoformat(self.modified or "")


class TableLister:
    """Lists the rows of the table of a source, which is its one container."""

    def __init__(self, source: Source, project: Project, marks: Marks, is_stopping: Callable[[], bool]) -> None:
        self._rows: TableTable = source.own
        self._url = find_container(source)
        self._project = project
        self._marks = marks
        self._is_stopping = is_stopping

    def list_roots(self) -> Sequence[str]:
        return [self._url]

    def walk(self) -> Iterator[ListedPart]:
        try:
            with closing(PartFile(self._project.cache_dir)) as spool:
                end = self._read(spool)
                for urls, tokens in _list_parts(spool):
                    if self._is_stopping():
                        return
                    yield ListedPart(url=self._url, entries=tuple(map(Entry, urls, tokens)))
                yield ListedPart(url=self._url, end=end)
        except DatabaseError as error:
            yield ListedPart(url=self._url, end=ListingEnd(code=error.code, error=str(error)))
        except OSError as error:
            # What was read has no room on the disk.
            yield ListedPart(url=self._url, end=ListingEnd(code=Code.IO_ERROR, error=error.strerror or str(error)))
        except _Stopped:
            return

    def _read(self, spool: PartFile) -> ListingEnd:
        """Writes all entries of this run to ``spool``; how the reading ended."""
        rows, began_ms = self._rows, clock.now_ms()
        mark = self._find_mark(began_ms)
        with closing(
            TableDatabase(rows.url or "", self._project.root, statement_seconds=rows.statement_seconds)
        ) as database:
            # Before the state that is read: a transaction that ends between the two is seen here, or there.
            began = clock.monotonic()
            open_seconds = database.find_open_seconds() if rows.modified is not None else 0.0
            keys = _Keys(self._url)
            with database.connect(snapshot=True) as connection:
                columns = load_columns(connection, rows)
                parts = self._read_parts(database, connection, columns, mark, keys)
                newest = self._find_newest(connection, columns)
                lag_seconds = max(rows.lag_seconds, open_seconds + clock.monotonic() - began)
                for part in parts:
                    spool.add([_pack(part)])
        if error := keys.find_error(spool):
            return ListingEnd(code=SQL_ERROR, error=error)
        noted = Mark(of=self._describe(), compared_ms=began_ms if mark is None else mark.compared_ms)
        if newest is not None:
            noted = _advance(noted, *newest, lag_seconds=lag_seconds)
        return ListingEnd(code=200, whole=mark is None, mark=json.dumps(asdict(noted)))

    def _read_parts(
        self, database: TableDatabase, connection: Connection, columns: Columns, mark: Mark | None, keys: _Keys
    ) -> Iterator[_Part]:
        """The rows that are to be compared, as they come."""
        modified = self._rows.modified
        now = clock.now() if modified is None else _read_now(connection)
        everything = select_all(self._rows, columns.names)
        if modified is not None:
            name = columns.spelled[modified]
            changed = select_all(self._rows, (*columns.key, name)).where(
                is_known(name) if mark is None else is_changed_since(name, mark.value)
            )
            for rows in self._fetch(database, connection, changed):
                yield _join(keys, (row[:-1] for row in rows), list_versions(rows, now))
            # Of these all is read, as it is of rows without such a column: nothing else tells that they have changed.
            everything = everything.where(is_unknown(name))
        places = [columns.names.index(name) for name in columns.key]
        for rows in self._fetch(database, connection, everything):
            yield _join(keys, ([row[place] for place in places] for row in rows), compute_digest(columns.names, rows))

    def _fetch(
        self, database: TableDatabase, connection: Connection, statement: Select[Any]
    ) -> Iterator[Sequence[Row[Any]]]:
        """The rows that a statement brings, some at a time."""
        database.begin_rows(connection)
        database.begin_step(connection)
        with closing(connection.execute(statement)) as found:
            while rows := found.fetchmany(MOST_ENTRIES):
                database.begin_step(connection)
                if self._is_stopping():
                    raise _Stopped
                yield rows

    def _find_newest(self, connection: Connection, columns: Columns) -> tuple[Any, datetime] | None:
        """The newest change in the state that is read, and what the clock of the database says."""
        if self._rows.modified is None:
            return None
        statement = select_newest(self._rows, columns.spelled[self._rows.modified])
        return connection.execute(statement).scalar_one(), _read_now(connection)

    def _find_mark(self, now_ms: int) -> Mark | None:
        """The mark at which an increment begins; None where all keys are to be read."""
        mark = Mark.read(self._marks.find_mark(self._url))
        if mark is None or mark.modified is None or mark.of != self._describe() or self._rows.modified is None:
            return None
        return mark if 0 <= now_ms - mark.compared_ms < self._rows.compare_hours * _HOUR_MS else None

    def _describe(self) -> str:
        """Changes with which rows there are, and with what is compared; not with who reads them."""
        rows = self._rows
        database = make_url(rows.url or "").set(username="", password="").render_as_string()
        return xxhash.xxh3_64_hexdigest(repr((database, rows.table, rows.query, rows.key, rows.modified)).encode())


class _Stopped(Exception):
    """The run is stopping: what was read so far says nothing."""


#: The identities of some rows, in ASCII, and the token of each.
_Part = tuple[list[str], list[bytes]]


class _Keys:
    """Makes identities of keys, and counts what is wrong with them."""

    def __init__(self, container: str) -> None:
        self._container = container
        self._hashes = [array("Q") for _ in range(_SHARES)]
        self._refused = 0
        self._reason = ""

    def take(self, found: Iterable[Sequence[Any]]) -> list[str]:
        """The identities of rows by their keys; empty for a row that can have none."""
        urls = list(map(self._identify, found))
        for number in map(_hash, urls):
            self._hashes[number % _SHARES].append(number)
        return urls

    def _identify(self, key: Sequence[Any]) -> str:
        try:
            return self._container + build_key(key)
        except NoKey as error:
            self._refused += 1
            self._reason = str(error)
            return ""

    def find_error(self, spool: PartFile) -> str | None:
        """What is wrong with the keys of all rows: then nothing can be said of those that are not there."""
        if self._refused:
            return f"table.key: of {self._refused} rows a column of the key {self._reason}"
        twice = self._find_twice()
        if twice is None:
            return None
        found = (url for urls, _ in _list_parts(spool) for url in urls)
        url = next(url for url in found if _hash(url) == twice)
        return f"table.key: several rows have the same key: {url}"

    def _find_twice(self) -> int | None:
        for share in self._hashes:
            if len(set(share)) < len(share):
                return next(number for number, times in Counter(share).items() if times > 1)
        return None


def _join(keys: _Keys, found: Iterable[Sequence[Any]], tokens: Iterable[bytes]) -> _Part:
    """Rows by their keys and tokens, but for those that can have no identity."""
    urls = keys.take(found)
    return list(filter(None, urls)), list(compress(tokens, urls))


def _hash(url: str) -> int:
    return xxhash.xxh3_64_intdigest(url.encode("ascii"))


def _pack(part: _Part) -> bytes:
    urls, tokens = part
    # Each byte of a token as one character.
    return json.dumps((urls, [token.decode("latin-1") for token in tokens])).encode()


def _list_parts(spool: PartFile) -> Iterator[_Part]:
    for record in spool:
        urls, tokens = json.loads(record)
        yield urls, [token.encode("latin-1") for token in tokens]


def _read_now(connection: Connection) -> datetime:
    """The clock of the database; that of this machine where it says what cannot be read."""
    said = read_clock(connection)
    return read_moment(to_text(said)) or clock.now()


def _advance(mark: Mark, newest: Any, now: datetime, *, lag_seconds: float) -> Mark:
    """The mark of the next run: before the newest change, and before now where changes lie in the future."""
    text = to_text(newest)
    moment = read_moment(text)
    if moment is None or not isinstance(newest, str | datetime | date):
        # Numbers and the like have no lag: all keys are read each time.
        return mark
    try:
        begin = min(moment, now.astimezone(moment.tzinfo or UTC)) - timedelta(seconds=lag_seconds)
    except OverflowError:
        return mark
    between = "T" if text[10:11] == "T" else " "
    written = begin.replace(tzinfo=None, microsecond=0).isoformat(between)
    # A column of days is compared by the day.
    end = len("2024-01-31") if len(text) == len("2024-01-31") else None
    return Mark(of=mark.of, compared_ms=mark.compared_ms, modified=written[:end], is_text=isinstance(newest, str))
