"""What the rows of a database cost: how long they take to be listed and read, and how much memory.

python -m benchmarks.rows [--rows 1e6] [--database sqlite|postgresql|mariadb] [--crawl]

A table of rows of a kilobyte is made, and read by the real lister and reader in a process of its own for each figure: all rows
with all columns, keys and times alone, and an increment after 100 changes. With ``--crawl`` the rows are crawled as well, then once
more with nothing changed, and once more with 100 changed rows. The result is printed, a line of JSON for each database.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

from benchmarks.measured import PYTHON, run_measured
from searchcrawl.kinds.table.lister import TableLister
from searchcrawl.kinds.table.reader import TableReader
from searchcrawl.listing.model import ReadRequest
from searchcrawl.sources.loading import load_project, load_source
from tests import mariadb_server, postgres_server

DATABASES: Final = ("sqlite", "postgresql", "mariadb")
_CHANGED: Final = 100
_WORDS: Final = "pears are green and plums are blue in the orchard of the castle by the lake " * 7
_TABLE: Final = "CREATE TABLE articles (id INTEGER PRIMARY KEY, name VARCHAR(100), body TEXT, changed TIMESTAMP NULL)"
_NUMBERS: Final = "WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id < 999)"
_NUMBER: Final = "a.id + 1000 * b.id"
#: One row is newer than all others, so that an increment does not begin with them.
_FILL: Final = (
    f"INSERT INTO articles {_NUMBERS} SELECT {_NUMBER}, CONCAT('Article ', {_NUMBER}), "
    # Its number between all words, so that no row is a copy of another.
    f"REPLACE('{_WORDS}', ' ', CONCAT(' ', {_NUMBER}, ' ')), "
    "CASE a.id + b.id WHEN 0 THEN {begin}'2020-01-01 00:00:00' ELSE {begin}'2019-01-01 00:00:00' END "
    f"FROM n a, n b WHERE {_NUMBER} < {{rows}}"
)
_CHANGE: Final = "UPDATE articles SET name = CONCAT('Changed ', name), changed = '2020-01-02 00:00:00' WHERE id < 100"
_SOURCE: Final = (
    'type = "table"\n[table]\nurl = "{url}"\ntable = "articles"\nkey = ["id"]\ntitle = "name"\ntext = "body"\n'
)
_TIMED: Final = 'modified = "changed"\n'
#: Gives the URL of a database, and what executes a statement there.
Place = tuple[str, Callable[[str], None]]


def main() -> int:
    """Measures each database."""
    parser = argparse.ArgumentParser(description="See benchmarks/rows.py.")
    parser.add_argument("--rows", default="1e6", help="the rows of the table (1e6)")
    parser.add_argument("--database", choices=DATABASES, help="one of them alone")
    parser.add_argument("--crawl", action="store_true", help="crawl them, too")
    arguments = parser.parse_args()
    rows = int(float(arguments.rows))
    for name in [arguments.database] if arguments.database else DATABASES:
        try:
            with _open(name) as (folder, (url, execute)):
                figures = _measure(folder, url, execute, rows, crawl=arguments.crawl)
                print(json.dumps({"database": name, "rows": rows, **figures}), flush=True)
        except (postgres_server.PartMissing, mariadb_server.PartMissing) as reason:
            print(f"absent: {name}: {reason}")
    return 0


@contextmanager
def _open(name: str) -> Iterator[tuple[Path, Place]]:
    folder = Path(tempfile.mkdtemp(prefix="searchcrawl-rows-"))
    try:
        with ExitStack() as stack:
            yield folder, _start(name, folder, stack)
    finally:
        shutil.rmtree(folder)


def _start(name: str, folder: Path, stack: ExitStack) -> Place:
    if name == "mariadb":
        maria = stack.enter_context(mariadb_server.start_mariadb())
        return maria.create_database("shop"), lambda statement: maria.execute("shop", statement)
    if name == "postgresql":
        postgres = stack.enter_context(postgres_server.start_postgres())
        url = postgres.create_database("shop")

        def execute(statement: str) -> None:
            with postgres.connect("shop") as connection:
                connection.execute(statement.encode())

        return url, execute

    def execute_sqlite(statement: str) -> None:
        with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
            connection.create_function("CONCAT", -1, lambda *texts: "".join(map(str, texts)))
            connection.execute(statement)

    return "sqlite:///shop.db", execute_sqlite


def _measure(
    folder: Path, url: str, execute: Callable[[str], None], rows: int, *, crawl: bool
) -> dict[str, Mapping[str, float]]:
    (folder / "sources").mkdir()
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", "utf-8")
    (folder / "searchcrawl.toml").write_text('contact = "https://example.com/"\n', "utf-8")
    source = _SOURCE.format(url=url)
    (folder / "sources" / "shop.toml").write_text(source, "utf-8")
    (folder / "sources" / "timed.toml").write_text(source + _TIMED, "utf-8")
    execute(_TABLE)
    execute(_FILL.format(rows=rows, begin="timestamp " if url.startswith("postgresql") else ""))
    figures = {
        "all columns": _child(folder, "shop"),
        "keys and times": _child(folder, "timed"),
        "1,000 rows read": _child(folder, "read"),
    }
    if crawl:
        figures["first crawl"] = _crawl(folder)
        figures["second crawl"] = _crawl(folder)
    execute(_CHANGE)
    figures["increment"] = _child(folder, "timed")
    if crawl:
        figures["crawl of 100 changes"] = _crawl(folder)
    return figures


def _child(folder: Path, what: str) -> Mapping[str, float]:
    output = folder / "figures.json"
    cost = run_measured([PYTHON, "-m", "benchmarks.rows", "child", what], cwd=folder, output=output)
    if cost.exit_code != 0:
        raise RuntimeError(output.with_suffix(".err").read_text("utf-8"))
    return {**json.loads(output.read_text("utf-8")), "peak_mb": round(cost.peak_rss_bytes / 1e6)}


def _crawl(folder: Path) -> Mapping[str, float]:
    output = folder / "crawl.json"
    cost = run_measured([PYTHON, "-m", "searchcrawl", "crawl", "timed", "--json"], cwd=folder, output=output)
    counts = json.loads(output.read_text("utf-8"))["counts"]
    return {
        "seconds": round(cost.wall_seconds, 2),
        "cpu_seconds": round(cost.cpu_seconds, 2),
        "peak_mb": round(cost.peak_rss_bytes / 1e6),
        "exit_code": cost.exit_code,
        "fetched": counts.get("fetched", 0),
    }


class _Marks:
    """The mark of the last listing, in a file."""

    def __init__(self) -> None:
        self.file = Path("mark.json")

    def find_mark(self, url: str) -> str | None:
        return self.file.read_text("utf-8") if self.file.exists() else None

    def has_entries(self, url: str) -> bool:
        return False


def child(what: str) -> int:
    """Lists the rows of a source in this folder, or reads some; prints what it took."""
    project = load_project(Path.cwd())
    source = load_source(project, "timed" if what == "timed" else "shop")
    began, cpu, count = time.monotonic(), time.process_time(), 0
    if what == "read":
        with closing(TableReader(source, project, _Marks())) as reader:
            urls = [f"row://shop/articles/{number}" for number in range(1000)]
            for begin in range(0, len(urls), 32):
                count += len(reader.read([ReadRequest(url, True) for url in urls[begin : begin + 32]]))
    else:
        marks = _Marks()
        for part in TableLister(source, project, marks, lambda: False).walk():
            count += len(part.entries)
            if part.end is not None and what == "timed":
                marks.file.write_text(part.end.mark or "", "utf-8")
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu
    print(json.dumps({"seconds": round(seconds, 2), "cpu_seconds": round(cpu_seconds, 2), "rows": count}))
    return 0


def run(arguments: Sequence[str]) -> int:
    """The whole measurement, or one part of it in a process of its own."""
    return child(arguments[1]) if arguments[:1] == ["child"] else main()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
