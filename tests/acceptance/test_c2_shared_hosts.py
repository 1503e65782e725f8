"""Two crawls over the same hosts, as the server sees them: one delay for both, and one goes on where the other is killed or
stopped (C2, X-S3).
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Self

import pytest

from searchcrawl.store.states import FetchState
from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_shared_hosts import at, gaps, sources_of
from tests.acceptance.support_stories import page
from tests.crawl_forks import LEASE, Forks, Running, started
from tests.final_state import read_state
from tests.site.client import LogEntry, SiteProcess
from tests.stored_rows import is_being_written, query

NAMES: Final = ("one", "two")
DELAY_SECONDS: Final = 0.3
#: The site notes when it has read a request.
TOLERANCE_SECONDS: Final = 0.002
LEASE_SECONDS: Final = 2.0


def shared(
    site: SiteProcess, folder: Path, *, hosts: int, pages: int, delay_seconds: float = DELAY_SECONDS
) -> CrawlProject:
    """Two sources over so many hosts, each with pages of its own of each."""
    names = [f"shared{number}.acme.test" for number in range(hosts)]
    paths = {name: [f"/{name}/{number}.html" for number in range(pages)] for name in NAMES}
    for host in names:
        site.set_pages(host, {path: page(f"{host} {path}") for each in paths.values() for path in each})
    # What was under way when a process was stopped may have taken longer than a request may.
    fetch = {"delay_seconds": delay_seconds, "retries": 2}
    tables = {name: at(site, names, *paths[name], **fetch) for name in NAMES}
    project = sources_of(site, folder, **tables)
    site.clear_log()
    return project


def source_of(entry: LogEntry) -> str:
    return entry["path"].split("/")[1]


def by_host(log: list[LogEntry]) -> dict[str, list[LogEntry]]:
    found: dict[str, list[LogEntry]] = defaultdict(list)
    for entry in log:
        found[entry["host"]].append(entry)
    return found


def assert_pace(log: list[LogEntry], delay_seconds: float = DELAY_SECONDS) -> None:
    for host, entries in by_host(log).items():
        found = gaps(entries)
        place = found.index(min(found))
        near = [(entry["time"], entry["ended"], entry["path"]) for entry in entries[max(place - 2, 0) : place + 4]]
        # Of all hosts at that moment: a server that was late has more than one request late.
        others = [(each["time"], each["host"], each["path"]) for each in log if abs(each["time"] - near[-1][0]) < 1]
        assert found[place] >= delay_seconds - TOLERANCE_SECONDS, (host, near, others)
        assert {entry["open"] for entry in entries} == {1}


def assert_whole(project: CrawlProject, pages: int) -> None:
    """Both sources have what an undisturbed crawl leaves: each page once, and nothing under way."""
    rows = query(
        project.folder, "SELECT s.name, u.code, u.fetch_state FROM urls u JOIN sources s ON s.id = u.source_id"
    )
    assert Counter(rows) == {(name, 200, int(FetchState.SETTLED)): pages for name in NAMES}
    assert [len(read_state(project.folder, name).index) for name in NAMES] == [pages, pages]


@pytest.mark.matrix
def test_c2_hosts_when_two_crawls_share_them_then_the_gap_holds_and_each_gets_its_part(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    project = shared(site, tmp_path, hosts=6, pages=30)

    codes = [one.wait() for one in [forks.start(project.folder, "crawl", name) for name in NAMES]]

    log = site.log(robots=False)
    times = {name: [entry["time"] for entry in log if source_of(entry) == name] for name in NAMES}
    # From when both have asked each host a few times: the one that came first has its turn, and the other reads robots.txt.
    begin = max(sorted(found)[18] for found in times.values())
    end = min(max(found) for found in times.values())
    beside = [source_of(entry) for entry in log if begin <= entry["time"] <= end]
    assert codes == [0, 0]
    assert_pace(site.log())
    assert_whole(project, 6 * 30)
    # On a busy machine the one begins later.
    assert len(beside) > len(log) / 4
    assert min(beside.count(name) for name in NAMES) > len(beside) / 3


@pytest.mark.matrix
@pytest.mark.few(1)
@pytest.mark.parametrize("blow", [signal.SIGSTOP, signal.SIGKILL])
def test_c2_hosts_when_one_of_two_crawls_is_stopped_or_killed_then_the_other_takes_them_and_the_gap_holds(
    site: SiteProcess, forks: Forks, tmp_path: Path, blow: signal.Signals
) -> None:
    project = shared(site, tmp_path, hosts=5, pages=18)
    with Rounds(site, forks, project, pages=18) as tested:
        tested.begin()
        taken_over = tested.strike(blow, lambda: len(site.log()) > 20)
        codes = tested.end()

    assert codes == [0, 0]
    assert taken_over < LEASE_SECONDS + 6
    assert_pace(site.log())
    assert_whole(project, 5 * 18)


@pytest.mark.matrix
@pytest.mark.few(1)
def test_c2_hosts_when_a_crawl_is_stopped_as_it_sends_then_it_sends_nothing_after_the_end_of_its_lease(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    project = shared(site, tmp_path, hosts=5, pages=18)
    with Rounds(site, forks, project, pages=18) as tested:
        tested.begin(stops_at="fetch.sent:12")
        taken_over = tested.take_over()
        codes = tested.end()

    assert codes == [0, 0]
    assert taken_over < LEASE_SECONDS + 6
    assert_pace(site.log())
    assert_whole(project, 5 * 18)


@pytest.mark.matrix
def test_l1_host_when_another_run_asks_it_then_explain_and_status_say_so(
    site: SiteProcess, forks: Forks, tmp_path: Path
) -> None:
    project = shared(site, tmp_path, hosts=3, pages=60)
    with started(forks.start(project.folder, "crawl", NAMES[0])) as running:
        running.until(lambda: len(by_host(site.log(robots=False))) == 3)
        running.freeze(lambda: not is_being_written(project.folder))
        url = f"/{NAMES[1]}/0.html"
        explained = project.ask("explain", site.url("shared0.acme.test", url), "--source", NAMES[1])
        own = project.ask("explain", site.url("shared0.acme.test", url), "--source", NAMES[0])
        status = project.ask("status", NAMES[0])
        shown = project.command("status", NAMES[0]).stdout
        never = project.ask("status", NAMES[1])

    steps = {step["step"]: step for step in explained["steps"]}
    assert steps["host"]["outcome"] == "waits"
    assert f"is asked by process {running.pid} on" in steps["host"]["detail"]
    assert f"(source {NAMES[0]}) now" in steps["host"]["detail"]
    assert "host" not in {step["step"] for step in own["steps"]}
    assert status["hosts"] == {"in_hand": 3, "waiting": 0, "pausing": 0}
    assert never["hosts"] is None
    assert "hosts in hand" in shown


class Rounds:
    """Two crawls of a project, the first of which is struck; a context manager: at its end none of them runs."""

    def __init__(
        self,
        site: SiteProcess,
        forks: Forks,
        project: CrawlProject,
        *,
        pages: int,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._site, self._forks, self._project, self._pages = site, forks, project, pages
        self._lease = {LEASE: str(lease_seconds)}
        self._stack = ExitStack()
        self._running: dict[str, Running] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(self, *, stops_at: str = "") -> None:
        """Starts both; the first one stops itself at a failpoint, at a moment when it does not write to the store."""
        if stops_at:
            self._start_stopped(NAMES[0], stops_at)
        else:
            self._start(NAMES[0])
        self._start(NAMES[1])

    def strike(self, blow: signal.Signals, ready: Callable[[], bool], victim: str = NAMES[0]) -> float:
        """Stops or kills one once ``ready``, until the other has asked each host of which it lacks pages; the seconds until then.

        Then it goes on.
        """
        struck = self._running[victim]
        struck.until(ready)
        if blow is signal.SIGSTOP:
            struck.freeze(self._is_left_alone)
        else:
            struck.signal(blow)
            struck.wait()
        return self.take_over(blow, victim)

    def take_over(self, blow: signal.Signals = signal.SIGSTOP, victim: str = NAMES[0]) -> float:
        """Waits as ``strike`` does, after the blow."""
        struck, other = self._running[victim], self._running[other_of(victim)]
        begun, struck_at = time.monotonic(), max(entry["time"] for entry in self._site.log())
        had = Counter(entry["host"] for entry in self._of(other_of(victim), after=0))
        left = {entry["host"] for entry in self._site.log() if had[entry["host"]] < self._pages}
        # What is on the way arrives.
        time.sleep(1)
        during = len(self._of(victim, after=struck_at))
        other.until(lambda: {entry["host"] for entry in self._of(other_of(victim), after=struck_at)} >= left)
        seconds = time.monotonic() - begun
        assert len(self._of(victim, after=struck_at)) == during
        if blow is signal.SIGSTOP:
            # Past the end of its lease, by its own clock as well.
            time.sleep(max(float(self._lease[LEASE]) + 0.5 - (time.monotonic() - begun), 0.0))
            struck.signal(signal.SIGCONT)
        else:
            self._start(victim)
        return seconds

    def end(self) -> list[int]:
        """Waits for the end of both; their exit codes."""
        return [self._running[name].wait() for name in NAMES]

    def _is_left_alone(self) -> bool:
        """Whether nobody writes to the store; the other crawl may be about to end."""
        for _ in range(50):
            if not is_being_written(self._project.folder):
                return True
            time.sleep(0.01)
        return False

    def _start(self, name: str, **environment: str) -> Running:
        running = self._forks.start(self._project.folder, "crawl", name, **self._lease, **environment)
        self._running[name] = self._stack.enter_context(started(running))
        return running

    def _start_stopped(self, name: str, failpoint: str) -> None:
        for _ in range(20):
            running = self._start(name, SEARCHCRAWL_FAILPOINT=f"{failpoint}:stop")
            running.until(partial(is_stopped, running.pid))
            if self._is_left_alone():
                return
            running.signal(signal.SIGKILL)
            running.wait()
        raise AssertionError("there is no such moment")

    def _of(self, name: str, *, after: float) -> list[LogEntry]:
        return [entry for entry in self._site.log(robots=False) if source_of(entry) == name and entry["time"] > after]


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].startswith(b"T")


def other_of(name: str) -> str:
    return NAMES[1 - NAMES.index(name)]


@pytest.fixture
def soak_forks() -> Iterator[Forks]:
    with Forks(2) as forks:
        yield forks


@pytest.mark.soak
@pytest.mark.pairs
@pytest.mark.parametrize("seed", range(20))
def test_c2_hosts_when_crawls_over_many_hosts_are_killed_and_stopped_then_they_are_taken_over_in_time(
    site: SiteProcess, soak_forks: Forks, tmp_path: Path, seed: int
) -> None:
    """With the lease of a real crawl."""
    chance = random.Random(seed)
    blow = (signal.SIGSTOP, signal.SIGKILL)[seed % 2]
    project = shared(site, tmp_path, hosts=50, pages=45, delay_seconds=0.8)
    with Rounds(site, soak_forks, project, pages=45, lease_seconds=30) as tested:
        tested.begin()
        some = chance.randrange(200, 1200)
        seconds = tested.strike(blow, lambda: len(site.log()) > some, chance.choice(NAMES))
        codes = tested.end()

    assert codes == [0, 0]
    assert seconds <= 35
    assert_pace(site.log(), 0.8)
    assert_whole(project, 50 * 45)
