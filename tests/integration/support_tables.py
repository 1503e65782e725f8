"""Databases with rows, and what lists and reads these as a run does."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from searchcrawl.kinds.table.lister import TableLister
from searchcrawl.kinds.table.reader import TableReader
from searchcrawl.listing.model import Entry, ListingEnd, Read, ReadRequest, Unread
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project


@dataclass(slots=True)
class Shop:
    """A database with rows: its URL, and how the owner of the rows connects to it; ``kind`` is sqlite, postgresql or mariadb."""

    kind: str
    url: str
    root: Path
    open: Callable[[], Any]

    @contextmanager
    def transaction(self) -> Iterator[Callable[[str], None]]:
        """An open transaction of the owner; it is committed at the end."""
        with closing(self.open()) as connection:
            cursor = connection.cursor()
            cursor.execute("BEGIN")
            yield cursor.execute
            connection.commit()

    def execute(self, *statements: str) -> None:
        """Executes statements in one transaction."""
        with self.transaction() as execute:
            for statement in statements:
                execute(statement)

    def source(self, **keys: Any) -> Source:
        """A source with these keys of ``[table]`` besides the URL."""
        table = {"url": self.url, **keys}
        return Source.model_validate({"name": "shop", "path": "sources/shop.toml", "type": "table", "table": table})

    @property
    def project(self) -> Project:
        return Project.model_validate({"root": self.root, "contact": "https://example.org/contact"})


@dataclass(slots=True)
class Listed:
    """What one reading of a table says."""

    entries: list[Entry]
    end: ListingEnd

    @property
    def keys(self) -> set[str]:
        """The ends of the identities."""
        return {entry.url.split("/", 4)[4] for entry in self.entries}

    @property
    def tokens(self) -> dict[str, bytes]:
        """The token of each row by the end of its identity."""
        return {entry.url.split("/", 4)[4]: entry.token for entry in self.entries}


@dataclass(slots=True)
class Marks:
    """What the store would know."""

    mark: str | None = None

    def find_mark(self, url: str) -> str | None:
        return self.mark

    def has_entries(self, url: str) -> bool:
        return False


@dataclass(slots=True)
class TableRuns:
    """A source that is listed several times, each time with the mark of the time before."""

    shop: Shop
    keys: Mapping[str, Any]
    marks: Marks = field(default_factory=Marks)

    def list_rows(self) -> Listed:
        """One reading; marks are kept as the store keeps them."""
        lister = TableLister(self.shop.source(**self.keys), self.shop.project, self.marks, lambda: False)
        parts = list(lister.walk())
        end = parts[-1].end
        assert end is not None
        assert all(part.end is None for part in parts[:-1])
        self.marks.mark = end.mark or self.marks.mark
        return Listed([entry for part in parts for entry in part.entries], end)

    def read(self, *urls: str) -> list[Read | Unread]:
        """What rows bring, by their identities or the ends of these."""
        reader = TableReader(self.shop.source(**self.keys), self.shop.project, self.marks)
        [container] = TableLister(
            self.shop.source(**self.keys), self.shop.project, self.marks, lambda: False
        ).list_roots()
        with closing(reader):
            return list(reader.read([ReadRequest(url if "://" in url else container + url, True) for url in urls]))

    def read_all(self) -> dict[str, Read]:
        """All rows that are listed, by the ends of their identities; each can be read."""
        listed = self.list_rows()
        answers = self.read(*[entry.url for entry in listed.entries])
        found = {entry.url.split("/", 4)[4]: answer for entry, answer in zip(listed.entries, answers, strict=True)}
        read = {key: answer for key, answer in found.items() if isinstance(answer, Read)}
        assert read.keys() == found.keys(), found
        return read


def open_sqlite_shop(root: Path) -> Shop:
    """An empty file."""
    path = root / "shop.db"
    return Shop("sqlite", "sqlite:///shop.db", root, lambda: sqlite3.connect(path, isolation_level=None))
