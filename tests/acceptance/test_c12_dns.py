"""C12: a host's address is looked up once, however many connections are made to it, and by whichever crawl."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from searchcrawl.failpoints import OF_NAMES
from searchcrawl.sources.loading import load_project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.schema import name_answers
from tests.crawl_forks import COMMANDS
from tests.hostile_server import HostileServer
from tests.site.client import write_project
from tests.stored_rows import query


def test_c12_dns_when_many_pages_of_hosts_are_fetched_then_each_host_is_looked_up_once() -> None:
    # Each answer of theirs ends its connection.
    with HostileServer() as one, HostileServer() as two:
        ports = (one.port, two.port)
        paths = [f"/ok?{number}" for number in range(6)]
        for path in paths:
            one.answers[path] = two.answers[path] = one.answers["/ok"]
        urls = [f"http://{host}:{port}{path}" for host in ("a.test", "b.test") for port in ports for path in paths]
        job: dict[str, Any] = {
            "urls": urls,
            "resolve_first": True,
            "dns": {"a.test": ["127.0.0.1"], "b.test": ["127.0.0.1"]},
            "fetch": {"private_networks": ["127.0.0.1/32"], "timeout_seconds": 5},
        }

        answer = COMMANDS.fetch(job)
        connections = len(one.requests) + len(two.requests)

    assert [visit["code"] for visit in answer["visits"]] == [200] * len(urls)
    # And a robots.txt for each host and port.
    assert connections == len(urls) + 4
    assert {host: answer["lookups"].get(host) for host in ("a.test", "b.test")} == {"a.test": 1, "b.test": 1}


def keep_for_minutes(folder: Path) -> None:
    """Has answers hold for longer than the rest of a test may take on a busy machine."""
    with closing(Database(load_project(folder).database_url, folder)) as database, database.write_once() as opened:
        opened.execute(update(name_answers).values(until_ms=name_answers.c.until_ms + 300_000))


class OtherCrawl:
    """The lease of a crawl that is going on beside those of a test; it is renewed by each call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with self._open() as database:
            source_id = database.write(run_table.find_or_add_source, "other")
            self._lease = database.write(lease.take, source_id, name="other")

    def __call__(self) -> None:
        with self._open() as database:
            database.write(lease.renew, self._lease)

    def end(self) -> None:
        with self._open() as database:
            database.write(lease.release, self._lease)

    def _open(self) -> closing[Database]:
        return closing(Database(load_project(self._folder).database_url, self._folder))


@pytest.mark.matrix
def test_c12_dns_when_sources_are_crawled_at_once_then_the_second_one_takes_the_answer_of_the_first(
    tmp_path: Path,
) -> None:
    with HostileServer() as server:
        start = f"http://localhost:{server.port}/ok"
        for name in ("one", "two"):
            write_project(
                tmp_path,
                server.port,
                name,
                start={"urls": [start]},
                scope={"include_hosts": ["localhost"]},
                fetch={"dns_per_second": 2},
            )
        statement = "SELECT name, addresses, error, until_ms FROM name_answers"
        other = OtherCrawl(tmp_path)
        killed, after = [], list[Any]()
        for point in OF_NAMES:
            other()
            # One dies as it is about to ask DNS, the next one once it has told the others.
            killed.append(COMMANDS.run(tmp_path, "crawl", "one", SEARCHCRAWL_FAILPOINT=point).returncode)
        keep_for_minutes(tmp_path)
        told = query(tmp_path, statement)
        for name in ("one", "two"):
            other()
            done = COMMANDS.run(tmp_path, "crawl", name)
            after.append(query(tmp_path, statement))
            assert done.returncode == 0, done.stderr

    ((name, addresses, error, _),) = told
    assert (name, "127.0.0.1" in addresses.split(" "), error) == ("localhost", True, None)
    # It was not looked up again, which would have been noted.
    assert (killed, after) == ([-signal.SIGKILL] * 2, [told, told])
    assert query(tmp_path, "SELECT count(*) FROM name_turns") == [(1,)]


@pytest.mark.matrix
def test_c12_dns_when_one_source_is_crawled_then_nothing_is_written_for_its_lookups(tmp_path: Path) -> None:
    with HostileServer() as server:
        write_project(
            tmp_path,
            server.port,
            "one",
            start={"urls": [f"http://localhost:{server.port}/ok"]},
            scope={"include_hosts": ["localhost"]},
            fetch={"dns_per_second": 2, "processes": 3},
        )
        OtherCrawl(tmp_path).end()
        done = COMMANDS.run(tmp_path, "crawl", "one")

    assert done.returncode == 0, done.stderr
    assert any(head.startswith("GET /ok ") for head in server.requests)
    rows = [query(tmp_path, f"SELECT count(*) FROM {table}") for table in ("name_answers", "name_turns")]
    assert rows == [[(0,)], [(0,)]]
