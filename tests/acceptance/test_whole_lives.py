"""Whole lives of small projects: whatever happens, nothing leaves the index by mistake (D4, D8, F2, L3).

Hypothesis makes up what happens. ``SEARCHCRAWL_LIVES`` is how many lives the soak tries, ``SEARCHCRAWL_LIVES_SEED``
the first of their seeds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from searchcrawl.failpoints import NAMES
from tests import backends
from tests.acceptance.support_project import new_project
from tests.crawl_forks import CLOCK, COMMANDS, Forks, started
from tests.site.client import SiteProcess
from tests.site.expected import short
from tests.stored_rows import query_columns
from tests.whole_lives import DAY, EDITS, FREE, HOSTS, ROBOTS, ROOT, URLS, WALLS, Page, Publisher, at, first_town

#: Limits that a small site reaches.
LIMIT: Final = 3
#: How a run may end: all done, a limit or signal, no start page, removals that wait.
ORDERLY: Final = (0, 3, 8, 9)
#: Codes of a row that speak against its document, and those by which another page has it.
EVIDENCE: Final = frozenset({404, 410, 951, 952, 953, 954, 955, 1004})
COPY: Final = frozenset({909, 956, 964})
QUARANTINED: Final = 6
KINDS: Final = (
    "new text", "old text", "gone", "gone for good", "link", "unlink", "copy", "canonical", "noindex", "301", "302",
    "403", "500", "503", "reset", "cut",
)  # fmt: skip

urls = st.sampled_from(URLS)
changes = st.lists(st.tuples(urls, st.sampled_from(KINDS), urls), min_size=1, max_size=4)


class WholeLife(RuleBasedStateMachine):
    """One project from its first crawl on; ``town`` is what its site and its source file say now."""

    site: ClassVar[SiteProcess]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="life-"))
        self.publisher = Publisher(self.site)
        self.town = first_town()
        self.plain = dict(self.town.pages)
        self.editions = 0
        self.clock = 0
        self.project = new_project(self.folder / "project", self.site)
        self.present: set[str] = set()
        #: in the index since a run that ended of itself: what leaves of these counts
        self.established: set[str] = set()
        self.removed: list[tuple[int, str]] = []
        #: pages against which something has spoken since they were last found well
        self.doubtful: set[str] = set()
        self.rejected: set[str] = set()
        #: texts that several pages had
        self.shared: set[tuple[int, int]] = set()
        self.was_killed = False
        #: the next run goes on with one that was cut off: it asks for no page twice
        self.goes_on = False
        #: a copy of the project, and what was known of it then
        self.saved: tuple[Path, set[str], set[str]] | None = None
        #: the store is older than the index: what it does not know of may stay until the next run has ended
        self.is_older = False
        self._configure()

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @initialize()
    def crawl_first(self) -> None:
        self.crawl()

    # What happens to the site and to the source file.

    @rule(changes=changes)
    def change(self, changes: list[tuple[str, str, str]]) -> None:
        for url, kind, other in changes:
            self._change(url, kind, other)
            self._doubt()

    def _change(self, url: str, kind: str, other: str) -> None:
        pages = self.town.pages
        self.editions += 1
        page = self.plain.get(url) or Page(text=(URLS.index(url) + 1, self.editions))
        if kind == "new text":
            page = pages[url] = self.plain[url] = replace(page, text=(URLS.index(url) + 1, self.editions))
        elif kind == "old text":
            pages[url] = page
        elif kind == "gone":
            pages.pop(url, None)
        elif kind in {"link", "unlink"}:
            source = ROOT if self.editions % 2 else other
            if source in pages and pages[source].is_read:
                links = pages[source].links
                pages[source] = replace(pages[source], links=links | {url} if kind == "link" else links - {url})
                self.plain[source] = replace(self.plain[source], links=pages[source].links)
        elif kind == "copy":
            if other in pages:
                pages[url] = pages[other]
                self.shared.add(pages[other].text)
        elif kind == "canonical":
            pages[url] = replace(page, canonical=other)
        elif kind == "noindex":
            pages[url] = replace(page, noindex=True)
        elif kind in {"301", "302"}:
            pages[url] = replace(page, status=int(kind), to=other)
            if other in pages:
                self.shared.add(pages[other].text)
        elif kind in {"reset", "cut"}:
            pages[url] = replace(page, fault=kind)
        else:
            pages[url] = replace(page, status=410 if kind == "gone for good" else int(kind))

    @rule(host=st.sampled_from(HOSTS), wall=st.sampled_from([None, *WALLS]))
    def wall(self, host: str, wall: str | None) -> None:
        self._put(self.town.walls, host, wall)

    @rule(host=st.sampled_from(HOSTS), robots=st.sampled_from([None, *ROBOTS]))
    def robots(self, host: str, robots: str | None) -> None:
        self._put(self.town.robots, host, robots)

    def _put(self, of_hosts: dict[str, str], host: str, value: str | None) -> None:
        if value is None:
            of_hosts.pop(host, None)
        else:
            of_hosts[host] = value
        self._doubt()

    @rule(key=st.sampled_from(sorted(EDITS)))
    def edit(self, key: str) -> None:
        self.town.edits ^= {key}
        self._configure()
        self._doubt()

    def _configure(self) -> None:
        tables: dict[str, Any] = {
            "start": {"urls": [at(ROOT, self.site.port)], "sitemaps": "off"},
            "scope": {"include_hosts": list(HOSTS)},
            "fetch": {"retries": 0},
            "lifecycle": {"max_delete_documents": LIMIT},
        }
        for key in sorted(self.town.edits):
            for table, values in EDITS[key].items():
                tables[table] = {**tables.get(table, {}), **values}
        self.project.edit(**tables)

    @rule(hours=st.sampled_from([-26, 1, 26, 24 * 8]))
    def shift_clock(self, hours: int) -> None:
        self.clock += hours * 3600

    # Runs, and how they end.

    @rule()
    def crawl(self) -> None:
        self._crawl()

    @rule()
    def crawl_again(self) -> None:
        self._crawl()

    @rule(visits=st.integers(1, 8))
    def crawl_some(self, visits: int) -> None:
        self._crawl("-a", f"limit={visits}")

    @rule()
    def crawl_while_the_site_is_down(self) -> None:
        self.town.up = False
        self._crawl()
        self.town.up = True

    @rule(point=st.sampled_from([name for name in NAMES if name != "migrate.mid"]), number=st.integers(1, 4))
    def crawl_and_be_killed(self, point: str, number: int) -> None:
        self.publisher.publish(self.town)
        code = self._command("crawl", "demo", SEARCHCRAWL_FAILPOINT=f"{point}:{number}").returncode
        assert code in (-signal.SIGKILL, *ORDERLY)
        self.was_killed = self.goes_on = True
        self._observe()

    @rule(requests=st.integers(1, 8))
    def crawl_and_be_interrupted(self, requests: int) -> None:
        self.publisher.publish(self.town)
        self.site.clear_log()
        with (
            Forks(1) as forks,
            started(forks.start(self.project.folder, "crawl", "demo", **self._variables())) as running,
        ):
            running.until(lambda: len(self.site.log()) >= requests or not Path(f"/proc/{running.pid}").exists())
            running.signal(signal.SIGINT)
            assert running.wait() in ORDERLY
        self.goes_on = True
        self._observe()

    def _crawl(self, *options: str) -> None:
        self.publisher.publish(self.town)
        ended = self.project.crawl(*options, **self._variables())
        assert ended.exit_code in ORDERLY, ended.errors
        self.was_killed = False
        counts = ended.counts
        assert counts["discovered"] == sum(
            counts[name] for name in ("to_fetch", "fetched", "fetch_failures", "rejected")
        ), counts
        self._observe()
        verified = self._command("verify", "demo")
        assert verified.returncode == 0 or self.is_older, verified.stdout
        is_finished = ended.status["run"]["end_reason"] == "finished"
        if is_finished and not self.goes_on:
            self._check_completed()
        self.goes_on = not is_finished

    # What operators do.

    @rule(approves=st.booleans())
    def decide(self, approves: bool) -> None:
        listed = self._command("quarantine", "list", "demo", "--json").stdout.splitlines()
        waiting = {short(json.loads(line)["url"]) for line in listed}
        done = self._command("quarantine", "approve" if approves else "reject", "demo")
        assert done.returncode == 0 or (done.returncode == 6 and self.is_older), done.stderr
        if not approves:
            self.rejected |= waiting
        self._observe(approved=waiting if approves else set())

    @rule()
    def lose_index(self) -> None:
        if self.is_older:
            return
        backends.current.lose_index(self.project.folder)
        done = self._command("resend", "demo")
        assert done.returncode == 0, done.stderr
        self.present = {*self.project.indexed()}
        self.established &= self.present
        # Removals that wait are of documents that the index has.
        assert self._command("verify", "demo").returncode == 0

    def _command(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return COMMANDS.run(self.project.folder, *words, **self._variables(), **variables)

    def _variables(self) -> dict[str, str]:
        return {CLOCK: str(self.clock)}

    # What must hold.

    def _doubt(self) -> None:
        self.doubtful |= {url for url in (ROOT, *URLS) if self.town.may_remove(url)}

    def _observe(self, approved: set[str] | None = None) -> None:
        """Compares the index with how it was before: what left may leave, and not too much of it."""
        listed = self.project.indexed()
        now, before, self.present = {*listed}, self.present, {*listed}
        left = before - now
        assert len(listed) == len(now), "a URL is in the index twice"
        assert left <= (self.doubtful if approved is None else approved), "it left without a reason"
        rows = self.project.rows()
        if not self.was_killed:
            for url in left:
                row = rows[url]
                assert row["code"] in EVIDENCE or (row["code"] in COPY and row["copy_of"] is not None), (url, row)
        if not approved:
            self.removed += [(self.clock, url) for url in left & self.established]
            lately = [url for moment, url in self.removed if abs(self.clock - moment) < DAY]
            limit = FREE if "lifecycle.max_delete_documents" in self.town.edits else LIMIT
            assert not left or len(lately) <= limit, f"left within 24 hours: {lately}"
        self.established -= left

    def _check_completed(self) -> None:
        """After a run that ended of itself: what is well is found, what is not leaves or waits."""
        rows = self.project.rows()
        reachable = self.town.reachable()
        known = reachable if "scope.depth" in self.town.edits else reachable | rows.keys()
        well = {url for url in known & {ROOT, *URLS} if self.town.is_indexable(url)}
        missing = [url for url in sorted(well) if not self._is_represented(url)]
        assert not missing, [(url, rows.get(url)) for url in missing]
        self.rejected = {url for url in self.rejected if self.town.removes(url)}
        stay = [
            url
            for url in self.present & rows.keys()
            if self.town.removes(url) and url not in self.rejected and rows[url]["document_state"] != QUARANTINED
        ]
        assert not stay or self.is_older, [(url, rows[url]) for url in stay]
        self.is_older = False
        self.doubtful -= well
        self._doubt()
        self.established |= self.present
        self._check_due()

    def _is_represented(self, url: str) -> bool:
        page = self.town.pages[url]
        found = self.project.found(f'"{page.phrase}"')
        if page.canonical is None and page.text not in self.shared:
            return url in found
        return bool(found) or any(other in self.present for other in self.town.canonicals(url))

    def _check_due(self) -> None:
        """Each row is visited again, or ``explain`` says why not."""
        resting = "SELECT url FROM urls WHERE fetch_state = 2 AND due_ms IS NULL"
        for row in query_columns(self.project.folder, resting):
            explained = self._command("explain", row["url"], "--json")
            assert explained.returncode == 0, explained.stderr
            assert json.loads(explained.stdout)["decided_by"]["rule"], explained.stdout


class LongLife(WholeLife):
    """The same, with a store that is put back from an earlier copy."""

    @rule()
    def save(self) -> None:
        if self.saved is None:
            copy = backends.current.copy(self.project.folder, self.folder / "saved")
            self.saved = copy, {*self.doubtful}, {*self.rejected}

    @rule()
    def put_store_back(self) -> None:
        if self.saved is not None:
            copy, doubtful, rejected = self.saved
            backends.current.put_back("store", copy, self.project.folder)
            self.saved = None
            shutil.rmtree(copy)
            self.doubtful |= doubtful
            self.rejected |= rejected
            # It has forgotten what was removed since.
            self.removed = []
            self.is_older = True


def live(kind: type[WholeLife], first_seed: int, lives: int, *, phases: tuple[Phase, ...]) -> None:
    """Tries so many lives."""
    machine: Callable[[], WholeLife] = seed(first_seed)(type("Life", (kind,), {}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=lives,
            stateful_step_count=20,
            deadline=None,
            database=None,
            print_blob=True,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture(autouse=True)
def site() -> Iterator[None]:
    with SiteProcess() as site:
        WholeLife.site = site
        yield


@pytest.mark.parametrize("number", range(3))
def test_index_in_a_whole_life_then_nothing_leaves_it_by_mistake(number: int) -> None:
    live(WholeLife, number, 5, phases=(Phase.generate,))


LIVES: Final = int(os.environ.get("SEARCHCRAWL_LIVES", "500"))
SEED: Final = int(os.environ.get("SEARCHCRAWL_LIVES_SEED", "1000"))
AT_ONCE: Final = 20


@pytest.mark.soak
@pytest.mark.matrix
@pytest.mark.parametrize("number", range(-(-LIVES // AT_ONCE)))
def test_index_in_many_whole_lives_then_nothing_leaves_it_by_mistake(number: int) -> None:
    live(LongLife, SEED + number, AT_ONCE, phases=(Phase.generate, Phase.shrink))
