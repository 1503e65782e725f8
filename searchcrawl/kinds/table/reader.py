"""Reads rows: the text or the file in one of its columns is the body of a document, all others are values of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Row

from searchcrawl.answer_headers import (
    UNREADABLE,
    Permissions,
    can_deny,
    encode_display,
    encode_permissions,
    encode_value,
)
from searchcrawl.bodies import put_down, read_whole
from searchcrawl.codes import Code
from searchcrawl.exceptions import InvalidUrl, SpoolFailed
from searchcrawl.kinds.table.config import TableTable, parse_template, read_text_rule
from searchcrawl.kinds.table.connecting import SQL_ERROR, DatabaseError, TableDatabase
from searchcrawl.kinds.table.identity import KeyValue, NoKey, build_key, find_container, parse_row
from searchcrawl.kinds.table.statements import Columns, load_columns, select_rows
from searchcrawl.kinds.table.values import (
    build_last_modified,
    is_binary,
    list_principals,
    list_texts,
    to_text,
)
from searchcrawl.listing.model import Marks, Read, ReadRequest, Unread
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project

#: The keys that one statement asks for.
_AT_ONCE: Final = 32
#: Rows that come at once: one may have very much in it, as a file.
_ROWS: Final = 4
_ROWS_WITH_FILES: Final = 1
_PLAIN: Final = b"text/plain; charset=utf-8"

Headers = tuple[tuple[bytes, bytes], ...]


class TableReader:
    """Reads rows of the table of a source, many with one statement."""

    def __init__(self, source: Source, project: Project, marks: Marks) -> None:
        self._rows: TableTable = source.own
        self._container = find_container(source)
        self._max_bytes = source.fetch.max_bytes
        self._project = project
        self._opening = threading.Lock()
        self._database: TableDatabase | None = None
        self._columns: Columns | None = None
        self._document = _DocumentRule(self._rows)

    def read(self, requests: Sequence[ReadRequest]) -> Sequence[Read | Unread]:
        found: dict[str, Read | Unread] = {}
        keys: dict[str, tuple[KeyValue, ...]] = {}
        for request in requests:
            key = self._find_key(request.url)
            if key is None:
                # An identity that another table or key had.
                found[request.url] = Unread(code=Code.NO_LONGER_LISTED, error="the source lists another table or key")
            else:
                keys[request.url] = key
        wanted = list(keys)
        for begin in range(0, len(wanted), _AT_ONCE):
            found |= self._read_some({url: keys[url] for url in wanted[begin : begin + _AT_ONCE]})
        return [found[request.url] for request in requests]

    def close(self) -> None:
        with self._opening:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _find_key(self, url: str) -> tuple[KeyValue, ...] | None:
        try:
            row = parse_row(url)
        except InvalidUrl:
            return None
        is_ours = url.startswith(self._container) and len(row.key) == len(self._rows.key or ())
        return row.key if is_ours else None

    def _read_some(self, keys: Mapping[str, tuple[KeyValue, ...]]) -> dict[str, Read | Unread]:
        try:
            return self._ask(keys)
        except DatabaseError as error:
            if len(keys) > 1 and error.code == SQL_ERROR:
                # One row that cannot be read costs no other one.
                return {url: answer for url, key in keys.items() for answer in self._read_some({url: key}).values()}
            return dict.fromkeys(keys, Unread(code=error.code, error=str(error), transient=error.is_passing))

    def _ask(self, keys: Mapping[str, tuple[KeyValue, ...]]) -> dict[str, Read | Unread]:
        """The answers for some rows; raises DatabaseError."""
        database = self._open()
        found: dict[str, Read | Unread] = {}
        with database.connect() as connection:
            # Once a run: a column that is dropped later makes the statement fail.
            columns = self._columns = self._columns or load_columns(connection, self._rows)
            places = [columns.names.index(name) for name in columns.key]
            statement = select_rows(self._rows, columns, list(keys.values()))
            at_once = _ROWS if self._rows.body is None else _ROWS_WITH_FILES
            with closing(connection.execute(statement, execution_options={"yield_per": at_once})) as rows:
                for row in rows:
                    database.begin_step(connection)
                    url = self._identify([row[place] for place in places])
                    # By its collation the database may bring rows that nobody asked for.
                    if url in keys:
                        found[url] = _several(url) if url in found else self._build(columns, row)
        gone = Unread(code=Code.NO_LONGER_LISTED, error="no row has this key")
        return {url: found.get(url, gone) for url in keys}

    def _identify(self, key: Sequence[Any]) -> str:
        try:
            return self._container + build_key(key)
        except NoKey:
            return ""

    def _build(self, columns: Columns, row: Row[Any]) -> Read | Unread:
        # Before any of it is copied; other bytes than those of the file are no part of a document.
        size = sum(len(value) for value in row if isinstance(value, str))
        if self._rows.body is not None and is_binary(value := row[columns.find(self._rows.body)]):
            size += len(value)
        if size > self._max_bytes:
            return Unread(code=Code.TOO_LARGE, error=f"{size} bytes or more")
        answer = self._document.build(columns, row)
        size = len(answer.body) + sum(len(value) for _, value in answer.headers)
        if size > self._max_bytes:
            return Unread(code=Code.TOO_LARGE, error=f"{size} bytes")
        try:
            # Several rows come together: of large files only one is in memory.
            return replace(answer, body=put_down(read_whole(answer.body), self._project.cache_dir))
        except SpoolFailed as error:
            return Unread(code=Code.READ_ERROR, error=str(error), transient=True)

    def _open(self) -> TableDatabase:
        with self._opening:
            if self._database is None:
                rows = self._rows
                self._database = TableDatabase(
                    rows.url or "", self._project.root, statement_seconds=rows.statement_seconds
                )
            return self._database


def _several(url: str) -> Unread:
    return Unread(code=SQL_ERROR, error=f"table.key: several rows have the same key: {url}")


class _DocumentRule:
    """Makes the answer for a row, as the source file says."""

    def __init__(self, rows: TableTable) -> None:
        self._rows = rows
        self._text = None if rows.text is None else read_text_rule(rows.text)
        self._display = None if rows.display is None else parse_template(rows.display)

    def build(self, columns: Columns, row: Row[Any]) -> Read:
        """The body and the headers of a row."""
        body, content_type = self._build_body(columns, row)
        headers = [(b"Content-Type", content_type)] if content_type else []
        if self._rows.modified is not None:
            modified = build_last_modified(row[columns.find(self._rows.modified)])
            headers += [(b"Last-Modified", modified.encode("ascii"))] if modified else []
        headers += self._list_values(columns, row)
        if self._rows.allow:
            headers += encode_permissions(self._find_permissions(columns, row))
        if self._display is not None:
            texts = {name: to_text(row[columns.find(name)]) for name in self._display.columns}
            headers.append(encode_display(self._display.fill(texts, escape=lambda text: quote(text, safe=""))))
        return Read(body=body, headers=tuple(headers))

    def _build_body(self, columns: Columns, row: Row[Any]) -> tuple[bytes, bytes]:
        """The body and its type; without one the bytes tell it."""
        if self._text is not None:
            if self._rows.text in columns.spelled and is_binary(value := row[columns.find(self._rows.text)]):
                return bytes(value), b"text/plain"
            texts = {name: to_text(row[columns.find(name)]) for name in self._text.columns}
            return self._text.fill(texts).encode(), _PLAIN
        value = row[columns.find(self._rows.body or "")]
        if value is None:
            return b"", _PLAIN
        kind = self._find_type(columns, row)
        if is_binary(value):
            return bytes(value), kind
        kind = kind or b"text/plain"
        return to_text(value).encode(), kind if b"charset" in kind else kind + b"; charset=utf-8"

    def _find_type(self, columns: Columns, row: Row[Any]) -> bytes:
        given = self._rows.body_type or ""
        text = to_text(row[columns.find(given)]) if given in columns.spelled else given
        is_type = "/" in text and text.isascii() and text.isprintable()
        return text.strip().encode("ascii") if is_type else b""

    def _list_values(self, columns: Columns, row: Row[Any]) -> Headers:
        """The values of all columns but that with the text or the file."""
        own = columns.spelled.get(self._rows.text or self._rows.body or "")
        return tuple(
            encode_value("column", name, text)
            for name, value in zip(columns.names, row, strict=True)
            if name != own
            for text in list_texts(value)
        )

    def _find_permissions(self, columns: Columns, row: Row[Any]) -> Permissions:
        """Who may see a row; nobody where a column has no names of principals, or all that allow are null.

        What would deny nobody, as a name without "user:", was meant to deny somebody.
        """
        allow = list_principals(row[columns.find(name)] for name in self._rows.allow)
        deny = list_principals(row[columns.find(name)] for name in self._rows.deny)
        if allow is None or deny is None or not all(map(can_deny, deny)):
            return UNREADABLE
        return Permissions(allow, deny)
