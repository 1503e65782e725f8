"""Sources of rows of PostgreSQL and MariaDB whose server fails in the middle of a crawl (A1, L3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from searchcrawl.store.states import FetchState
from tests import mariadb_server, postgres_server
from tests.crawl_forks import COMMANDS, Forks, started
from tests.stored_rows import query_columns

_MANY = 60
_SOURCE = """
type = "table"

[table]
url = "{url}"
table = "articles"
key = ["id"]
text = "text"
statement_seconds = 5

[fetch]
delay_seconds = {delay}
retries = 0
"""


@dataclass(frozen=True)
class Server:
    """A server with a table of rows, and a project that crawls it."""

    folder: Path
    url: str
    execute: Callable[..., None]
    kill: Callable[[], None]
    start: Callable[[], None]

    def write(self, *, delay: float = 0.0) -> None:
        text = _SOURCE.replace("{url}", self.url).replace("{delay}", str(delay))
        (self.folder / "sources" / "shop.toml").write_text(text, "utf-8")

    def crawl(self, *, code: int = 0) -> dict[str, Any]:
        ended = COMMANDS.run(self.folder, "crawl", "shop", "--json")
        assert ended.returncode == code, ended.stderr
        counts: dict[str, Any] = json.loads(ended.stdout)["counts"]
        return counts

    def count_documents(self) -> int:
        found = COMMANDS.run(self.folder, "search", "*", "--source", "shop", "--json")
        assert found.returncode == 0, found.stderr
        return int(json.loads(found.stdout)["total"])

    def count_unread(self) -> int:
        """The rows whose visit has not ended yet."""
        query = f"SELECT count(*) AS unread FROM urls WHERE fetch_state <> {int(FetchState.SETTLED)}"
        return int(query_columns(self.folder, query)[0]["unread"])


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request: pytest.FixtureRequest, tmp_path: Path, part_missing: Callable[[str], NoReturn]) -> Iterator[Server]:
    """A server of its own, which may be killed."""
    with ExitStack() as stack:
        try:
            made = _start(str(request.param), tmp_path, stack)
        except (postgres_server.PartMissing, mariadb_server.PartMissing) as error:
            part_missing(str(error))
        (tmp_path / "sources").mkdir()
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", "utf-8")
        (tmp_path / "searchcrawl.toml").write_text('contact = "https://example.com/"\n', "utf-8")
        made.write()
        made.execute("CREATE TABLE articles (id INTEGER PRIMARY KEY, text TEXT)")
        rows = ", ".join(f"({number}, 'sold by the piece, number {number}')" for number in range(1, _MANY + 1))
        made.execute(f"INSERT INTO articles VALUES {rows}")
        yield made


def _start(kind: str, folder: Path, stack: ExitStack) -> Server:
    if kind == "mariadb":
        maria = stack.enter_context(mariadb_server.start_mariadb())
        url = maria.create_database("shop")
        return Server(folder, url, lambda statement: maria.execute("shop", statement), maria.kill, maria.start)
    postgres = stack.enter_context(postgres_server.start_postgres())
    url = postgres.create_database("shop")

    def execute(statement: str) -> None:
        with postgres.connect("shop") as connection:
            connection.execute(statement)

    return Server(folder, url, execute, postgres.kill, postgres.start)


def test_server_when_it_is_gone_at_the_listing_then_nothing_leaves_and_the_next_run_is_whole(server: Server) -> None:
    server.crawl()
    server.execute("DELETE FROM articles WHERE id = 1")
    server.kill()
    gone = server.crawl(code=3)
    status = COMMANDS.run(server.folder, "status", "shop")
    server.start()
    back = server.crawl()

    assert gone["deleted"] == 0
    assert "row://shop/articles/ could not be listed" in status.stdout
    assert back["deleted"] == 1
    assert server.count_documents() == _MANY - 1


def test_server_when_it_is_gone_at_the_reading_then_nothing_leaves_and_the_next_run_reads_the_rest(
    server: Server, forks: Forks
) -> None:
    server.crawl()
    server.execute("UPDATE articles SET text = CONCAT('another text of row ', id)")
    server.write(delay=0.1)
    with started(forks.start(server.folder, "crawl", "shop")) as running:
        running.until(lambda: 0 < server.count_unread() < _MANY)
        server.kill()
        code = running.wait()
    left = server.count_documents()
    server.start()
    server.write()
    server.crawl()

    assert code == 3
    assert left == _MANY
    assert server.count_documents() == _MANY
    found = COMMANDS.run(server.folder, "search", "another", "--source", "shop", "--json")
    assert json.loads(found.stdout)["total"] == _MANY


@pytest.mark.parametrize("failpoint", ["links.committed", "listing.end", "row.updated:2", "batch.sealed"])
def test_crawl_when_killed_then_the_next_one_ends_as_an_undisturbed_one(server: Server, failpoint: str) -> None:
    server.crawl()
    server.execute("DELETE FROM articles WHERE id = 1")
    server.execute("UPDATE articles SET text = CONCAT('pears are green, number ', id) WHERE id < 20")
    server.execute(f"INSERT INTO articles VALUES ({_MANY + 1}, 'plums are blue')")

    killed = COMMANDS.run(server.folder, "crawl", "shop", SEARCHCRAWL_FAILPOINT=failpoint)
    server.crawl()

    assert killed.returncode == -9
    assert server.count_documents() == _MANY
    found = COMMANDS.run(server.folder, "search", "pears OR plums", "--source", "shop", "--json")
    assert json.loads(found.stdout)["total"] == 19
