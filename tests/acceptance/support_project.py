"""A project on disk that crawls the test site, and what its store and its index say afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from searchcrawl.index.opening import open_index
from searchcrawl.index.receiver import SearchHit, SearchIndex, SearchQuery
from searchcrawl.run import begin
from searchcrawl.selftest.final_state import find_wrong_sums
from searchcrawl.sources.loading import load_project, load_source
from searchcrawl.store.engine.database import Database
from tests.crawl_forks import COMMANDS, PAUSE
from tests.site.client import ROOT, SiteProcess, source_toml, write_project
from tests.site.expected import short
from tests.solr_server import free_port
from tests.stored_rows import query_columns

LIMIT_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = "0.01"
_PROBE: Final = 'EXTENSIONS={"tests.acceptance.support_reactor_probe.ReactorProbe": 1}'
_ROWS: Final = """
    SELECT urls.url, urls.fetch_state, urls.code, urls.rule, urls.error, urls.depth, urls.redirects, urls.attempts,
           documents.state AS document_state, documents.indexed_version, documents.index_error, original.url AS copy_of,
           documents.quarantine_run, documents.removed_run, documents.evidence
    FROM urls LEFT JOIN documents ON documents.url_id = urls.id LEFT JOIN urls AS original
    ON original.id = documents.duplicate_of
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A crawl that ended: ``status`` is the object of ``--json``, empty where there was none."""

    exit_code: int
    seconds: float
    errors: str
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """The counters of the run."""
        counts: dict[str, int] = self.status["counts"]
        return counts

    @property
    def refused_links(self) -> dict[str, str]:
        """The rule that refused links without a row, by host without its port."""
        return {(row["host"] or "").partition(":")[0]: row["rule"] for row in self.status["refused_links"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlProject:
    """One source and the folder of its project; URLs are written as ``tests.site.expected`` does."""

    folder: Path
    site: SiteProcess
    name: str = "demo"
    options: tuple[str, ...] = ()

    def crawl(self, *options: str, **variables: str) -> Ended:
        """One run, in a process of its own; a host that fails is not waited for as long as it would be."""
        begun = time.monotonic()
        given = {PAUSE: _PAUSE_SECONDS, **variables}
        ended = COMMANDS.run(self.folder, "crawl", self.name, "--json", *self.options, *options, **given)
        assert ended.returncode != 1, ended.stderr
        status = json.loads(ended.stdout) if ended.stdout else {}
        if status:
            # Whatever a test is about: the counters of its runs add up (J1), and are those of the table.
            wrong = find_wrong_sums(status["counts"])
            wrong += [warning["message"] for warning in status["warnings"] if warning["code"] == "counters"]
            assert not wrong, wrong
        seconds = time.monotonic() - begun
        return Ended(exit_code=ended.returncode, seconds=seconds, errors=ended.stderr, status=status)

    def crawl_measured(self) -> tuple[Ended, dict[str, Any]]:
        """One run, and what ``support_reactor_probe`` measured of it."""
        file = self.folder / "probe.json"
        ended = self.crawl("-s", _PROBE, "-s", f"PROBE_FILE={file}")
        return ended, json.loads(file.read_text("utf-8"))

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another command of ours, in the project, in a process of its own."""
        return COMMANDS.run(self.folder, *arguments)

    def ask(self, *arguments: str, code: int = 0, **variables: str) -> dict[str, Any]:
        """The one object that a command prints as JSON; the command has to end with ``code``."""
        (answer,) = self.lines(*arguments, code=code, **variables)
        return answer

    def lines(self, *arguments: str, code: int = 0, **variables: str) -> list[dict[str, Any]]:
        """The objects that a command prints as JSON, a line each."""
        done = COMMANDS.run(self.folder, *arguments, "--json", **variables)
        assert done.returncode == code, (arguments, done.returncode, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def step(self, name: str, url: str, **variables: str) -> str:
        """What ``explain`` says of a URL in its step of this name."""
        steps = self.ask("explain", url, **variables)["steps"]
        return next(str(step["detail"]) for step in steps if step["step"] == name)

    def last_run(self) -> str:
        """The number of the last run."""
        return str(self.ask("status", self.name)["run"]["id"])

    @contextmanager
    def busy(self) -> Iterator[None]:
        """This process has the lease of the source meanwhile."""
        loaded = load_project(self.folder)
        with closing(Database(loaded.database_url, loaded.root)) as database:
            crawled = begin(loaded, load_source(loaded, self.name), database)
            yield
            crawled.end("stopped", 3)

    def edit(self, **overrides: Any) -> None:
        """Writes the source file anew; overrides as in ``source_toml``."""
        (self.folder / "sources" / f"{self.name}.toml").write_text(source_toml(self.site, **overrides), "utf-8")

    def rows(self) -> dict[str, dict[str, Any]]:
        """The rows of the URL table with their documents, by short URL."""
        return {short(row["url"]): row for row in query_columns(self.folder, _ROWS)}

    def codes(self) -> dict[str, int]:
        """The code of each row."""
        return {url: row["code"] for url, row in self.rows().items()}

    def found(self, words: str) -> list[str]:
        """What a search of the index finds, the best first."""
        return [short(hit.fields["url"]) for hit in self.hits(words)]

    def hits(self, words: str) -> list[SearchHit]:
        """The hits of a search of this source."""
        with self._index() as index:
            return list(index.search(SearchQuery(words=words, source=self.name, rows=1000)).hits)

    def indexed(self) -> list[str]:
        """The URL of each document of the index, sorted; one that is there twice is listed twice."""
        with self._index() as index:
            return sorted(short(entry.url) for entry in index.scan(self.name))

    def versions(self) -> dict[str, int]:
        """The crawl_version of each document of the index."""
        with self._index() as index:
            return {short(entry.url): entry.crawl_version for entry in index.scan(self.name)}

    def log(self) -> str:
        """The log of the source."""
        return (self.folder / "var" / "log" / f"{self.name}.log").read_text("utf-8")

    @contextmanager
    def _index(self) -> Iterator[SearchIndex]:
        with closing(open_index(load_project(self.folder))) as index:
            yield index


def new_project(
    folder: Path, site: SiteProcess, *, name: str = "demo", options: tuple[str, ...] = (), **overrides: Any
) -> CrawlProject:
    """A project in ``folder`` for ``site``; ``options`` go with each crawl, overrides as in ``write_project``."""
    write_project(folder, site, name, **overrides)
    return CrawlProject(folder=folder, site=site, name=name, options=options)


def absent_index() -> dict[str, str]:
    """The ``[index]`` of a Solr that is not there."""
    return {"type": "solr", "url": f"http://127.0.0.1:{free_port()}/solr/pages"}


def use_settings_module(folder: Path, lines: str) -> None:
    """Gives a project a settings module of its own, with these lines after ours."""
    (folder / "house.py").write_text(f"from searchcrawl.settings import *\n{lines}", "utf-8")
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = house\n", "utf-8")


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Waits until something is so; AssertionError where it is not by then."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def run_apart(
    folder: Path, *command: str | Path, seconds: float = LIMIT_SECONDS, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A program in ``folder``, in a process that nothing was loaded for, until its end."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def environment(**variables: str) -> dict[str, str]:
    """The environment of a crawl: ours without settings that would change it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SCRAPY_", "SEARCHCRAWL_"))}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}
