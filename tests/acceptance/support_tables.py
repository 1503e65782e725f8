"""A project with a source of the rows of an SQLite file, and what its crawls and searches say."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests import backends
from tests.crawl_forks import COMMANDS
from tests.site.toml_text import to_toml

#: The source file, without what each test adds.
SOURCE: Final = """
type = "table"

[table]
url = "sqlite:///shop.db"
table = "articles"
key = ["id"]
title = "name"
text = "text"
"""
#: Rows at the beginning.
MANY: Final = 40


class ShopProject:
    """A project with a source ``shop`` of an SQLite file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "sources").mkdir()
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", "utf-8")
        tables = {"contact": "https://example.com/", **backends.current.tables(folder)}
        (folder / "searchcrawl.toml").write_text(to_toml(tables), "utf-8")
        self.edit("")
        self.execute("CREATE TABLE articles (id INTEGER PRIMARY KEY, name TEXT, text TEXT, city TEXT, changed TEXT)")
        for number in range(1, MANY + 1):
            self.put(number)

    def edit(self, lines: str) -> None:
        """The source file: what each test has, and further lines."""
        (self.folder / "sources" / "shop.toml").write_text(f"{SOURCE}{lines}\n", "utf-8")

    def execute(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.folder / "shop.db", isolation_level=None)) as connection:
            connection.execute(statement, values)

    def put(self, number: int, **values: Any) -> None:
        """A row with this number, in the place of the one before."""
        row = {
            "name": f"Article {number}",
            "text": f"sold by the piece, number {number}",
            "city": "Bergen",
            "changed": "2030-01-31 12:00:00.5",
            **values,
        }
        self.execute("REPLACE INTO articles VALUES (?, ?, ?, ?, ?)", number, *row.values())

    def crawl(self, *, code: int = 0) -> dict[str, Any]:
        """One run, which ends with ``code``; its counters."""
        ended = COMMANDS.run(self.folder, "crawl", "shop", "--json")
        assert ended.returncode == code, ended.stderr
        counts: dict[str, Any] = json.loads(ended.stdout)["counts"]
        return counts

    def command(self, *arguments: str, code: int = 0) -> str:
        ended = COMMANDS.run(self.folder, *arguments)
        assert ended.returncode == code, (ended.stdout, ended.stderr)
        return ended.stdout + ended.stderr

    def search(self, words: str, *options: str) -> list[dict[str, Any]]:
        found = COMMANDS.run(self.folder, "search", words, "--source", "shop", "--rows", "100", "--json", *options)
        assert found.returncode == 0, found.stderr
        hits: list[dict[str, Any]] = json.loads(found.stdout)["hits"]
        return hits
