"""One synthetic table measured through the real modules, in a process of its own; called by benchmarks/scale.py.

python -m benchmarks.scale_measure fill|measure STORE_URL SIZE FOLDER: the figures as JSON on standard output.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, TypeVar

from benchmarks.scale_table import LINKS_A_PAGE, SOURCE, fill, host_count, kind_of, url_of
from searchcrawl import run
from searchcrawl.admission.admit import Admission, FoundLinks
from searchcrawl.admission.trap_watch import TrapWatch
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.codes import REFUSED
from searchcrawl.commit.group_commit import GROUP_PAGES, GroupCommit, Listeners, WriterQueue
from searchcrawl.commit.review import Review
from searchcrawl.frontier import frontier
from searchcrawl.frontier.claiming import Claiming
from searchcrawl.frontier.window import Window
from searchcrawl.items import Claim, Link, Outcome
from searchcrawl.politeness.host_registry import HostRegistry
from searchcrawl.queries import status, urls
from searchcrawl.run import Run
from searchcrawl.sources import loading
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import run_table

T = TypeVar("T")

CLAIMS: Final = 20_000
ADMISSION_GROUPS: Final = 10
LISTED_ROWS: Final = 1000
DEEPER: Final = 10
_PROJECT: Final = 'contact = "bench@example.org"\n\n[store]\nurl = "{url}"\n'
_SOURCE: Final = """\
type = "web"

[start]
urls = ["http://www0.site.example/"]

[scope]
include_hosts = ["site.example"]
{limit}
[fetch]
delay_seconds = 0
host_concurrency = 16
"""


def finish(review: Review) -> None:
    """Looks at all rows that are left."""
    while not review.is_over:
        review.step()


class Meter:
    """Time from now on, of the clock and of this process's CPU (a server's is not in it)."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def rate(self, what: str, amount: int) -> dict[str, float]:
        """How many a second, and the CPU of each in microseconds."""
        wall_seconds, cpu_seconds = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {f"{what}_a_second": amount / wall_seconds, f"{what}_cpu_us": cpu_seconds * 1e6 / amount}


class Measuring:
    """A table of ``size`` URLs in ``database``; every method notes what it measured in ``figures``."""

    def __init__(self, folder: Path, database_url: str, size: int) -> None:
        self.size = size
        self.figures: dict[str, float] = {}
        self._folder = folder
        self._url = database_url
        self._chance = random.Random(size)
        self._fresh = count(size + 1)
        self._database = self._timed("open_seconds", lambda: Database(database_url, folder))
        self._load(limit="")
        self._run: Run

    def all(self) -> dict[str, float]:
        """Everything, in the order of a maintenance run."""
        self.start()
        self.settle(self.claim())
        self.admit()
        self.answer()
        self._timed("end_seconds", lambda: self._run.end("finished", 0))
        self.start_after_edit()
        self.figures["peak_rss_bytes"] = peak_rss_bytes()
        return self.figures

    @property
    def run(self) -> Run:
        """The run that was begun last."""
        return self._run

    def start(self) -> None:
        """From the lease to the first claims in the window."""
        began = time.perf_counter()
        self._run = self._timed("begin_seconds", self._begin)
        self._timed("first_claims_seconds", self._first_claims)
        self.figures["start_seconds"] = time.perf_counter() - began

    def claim(self) -> list[Claim]:
        """Claims rows as a crawl does whose pages take no time."""
        wanted = min(CLAIMS, self.size // 2)
        claimed: list[Claim] = []
        meter = Meter()
        line, filled = self.frontier()
        while len(claimed) < wanted and not line.exhausted:
            filled.clear()
            found = line.next_claim()
            if found is None:
                filled.wait(1.0)
                continue
            claimed.append(found[1])
            line.end_visit(Outcome(claim=found[1], code=304))
        self.figures |= meter.rate("claims", len(claimed))
        line.close()
        return claimed

    def settle(self, claims: Sequence[Claim]) -> None:
        """Settles unchanged pages by the writer thread."""
        cache = DocumentCache(SegmentFolder(self._folder / "cache"), self._folder)
        listeners = Listeners(
            in_flight=lambda: 1,
            hold=lambda: lambda: None,
            on_commit=lambda visits, hosts: None,
            on_part=lambda _: None,
            on_batch=lambda _: None,
            on_failure=self._failed,
        )
        waiting, admission = WriterQueue(), self._admission()
        traps = TrapWatch(self._run.source_id, trap_after=0, max_urls_per_pattern=0)
        review = Review(self._run, admission, listeners.hold)
        writer = GroupCommit(self._run, cache, admission, waiting, traps=traps, review=review, listeners=listeners)
        meter = Meter()
        for claim in claims:
            waiting.submit(Outcome(claim=claim, code=304))
        writer.finish()
        self.figures |= meter.rate("settles", len(claims))

    def admit(self) -> None:
        """Links of new URLs, of known ones that nobody remembers, and the same once more."""
        admission = self._admission()
        self._admitted("new_links", admission, self._groups(lambda: next(self._fresh)))
        known = self._groups(lambda: self._chance.randrange(1, self.size + 1))
        self._admitted("known_links", admission, known)
        self._admitted("remembered_links", admission, known)

    def answer(self) -> None:
        """``status``, and the first rows of ``urls``."""
        source = self._source
        self._timed("status_seconds", lambda: status.describe_status(self._project, source, self._database))
        rows = self._timed(
            "urls_first_page_seconds",
            lambda: list(islice(urls.list_urls(self._database, source), LISTED_ROWS)),
        )
        self._timed(
            "urls_of_code_seconds",
            lambda: list(islice(urls.list_urls(self._database, source, code=404), LISTED_ROWS)),
        )
        if len(rows) != LISTED_ROWS:
            raise SystemExit(f"scale: {len(rows)} rows listed, not {LISTED_ROWS}")

    def start_after_edit(self) -> None:
        """A run after another limit in the source file: what rules refused is to be looked at again, and all is due."""
        self._load(limit="depth = 20\n")
        began = time.perf_counter()
        self._run = self._begin()
        if not self._run.forced:
            raise SystemExit("scale: the edit changed nothing")
        review = Review(self._run, self._admission(), hold=lambda: lambda: None)
        review.open()
        self._first_claims()
        self.figures["begin_after_edit_seconds"] = time.perf_counter() - began
        self._timed("review_seconds", lambda: finish(review))
        self._run.end("stopped", 0)

    def _begin(self) -> Run:
        return run.begin(self._project, self._source, self._database)

    def _load(self, *, limit: str) -> None:
        sources = self._folder / "sources"
        sources.mkdir(exist_ok=True)
        (self._folder / "searchcrawl.toml").write_text(_PROJECT.format(url=self._url), encoding="utf-8")
        (sources / f"{SOURCE}.toml").write_text(_SOURCE.format(limit=limit), encoding="utf-8")
        self._project = loading.load_project(self._folder)
        self._source = loading.load_source(self._project, SOURCE)

    def _admission(self) -> Admission:
        known = 0
        if self._source.scope.max_urls:
            known = self._run.read(
                lambda transaction: run_table.count_urls(transaction, self._run.source_id, without=REFUSED)
            )
        return Admission(
            source_id=self._run.source_id,
            boundary=self._run.boundary,
            max_urls=self._source.scope.max_urls,
            known_urls=known,
        )

    def frontier(self, *, until_claims: bool = True) -> tuple[frontier.Frontier, threading.Event]:
        """A frontier that has claimed once, or has only begun, and the event of its next claims."""
        filled = threading.Event()
        line = frontier.Frontier(
            self._run,
            Window(HostRegistry(delay_seconds=0, host_concurrency=16)),
            WriterQueue(),
            build_claims=partial(
                Claiming,
                traps=TrapWatch(self._run.source_id, trap_after=0, max_urls_per_pattern=0),
                may_claim=lambda: True,
                may_revisit=lambda: True,
                has_sent=lambda: True,
            ),
        )
        line.start(filled.set)
        if until_claims and not filled.wait(600):
            raise SystemExit("scale: no claim within ten minutes")
        return line, filled

    def _first_claims(self) -> None:
        self.frontier()[0].close()

    def _groups(self, number: Callable[[], int]) -> list[list[FoundLinks]]:
        """The links of pages, a group of pages at a time."""
        pages = iter(range(1, self.size + 1))
        fetched = (page for page in pages if kind_of(page) == 200)
        return [
            [
                # Deeper than any row: those that come nearer have costs of their own.
                FoundLinks(page, DEEPER, [Link(url_of(number(), host_count(self.size))) for _ in range(LINKS_A_PAGE)])
                for page in islice(fetched, GROUP_PAGES)
            ]
            for _ in range(ADMISSION_GROUPS)
        ]

    def _admitted(self, what: str, admission: Admission, groups: Sequence[list[FoundLinks]]) -> None:
        links = sum(len(found.links) for group in groups for found in group)
        meter = Meter()
        for group in groups:
            self._run.write(lambda transaction, group=group: admission.admit(transaction, group))  # type: ignore[misc]
            admission.note_commit()
        self.figures |= meter.rate(what, links)

    def _timed(self, figure: str, work: Callable[[], T]) -> T:
        began = time.perf_counter()
        result = work()
        self.figures[figure] = time.perf_counter() - began
        return result

    def _failed(self, error: Exception) -> None:
        raise SystemExit(f"scale: {error}") from error


def peak_rss_bytes() -> int:
    """The most memory that this process has had at once."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def main(what: str, database_url: str, size: str, folder: str) -> None:
    """Fills or measures; prints the figures."""
    if what == "fill":
        database = Database(database_url, Path(folder))
        began = time.perf_counter()
        fill(database, int(size))
        database.close()
        figures: dict[str, Any] = {"fill_seconds": time.perf_counter() - began, "hosts": host_count(int(size))}
    else:
        figures = Measuring(Path(folder), database_url, int(size)).all()
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
