"""``selftest --kill9``: crawls the built-in site, kills the crawls at random points, and compares with one undisturbed.

A round is a project of its own: the site is crawled, changes, and is crawled again. Each of both crawls is killed once or
a few times, at a failpoint or at a moment, each start recovering from the kill before it; then it may end.

Compared is also whether the counters of the last run add up, and are those of its URL table (J1).
"""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import orjson

from searchcrawl.codes import Code, CodeClass, facts_of
from searchcrawl.selftest import project
from searchcrawl.selftest.final_state import (
    FinalState,
    differences,
    ended_runs,
    fetching,
    inconsistencies,
    last_counts,
    read_state,
)
from searchcrawl.selftest.project import KILLED, SOURCE, KillLater, Starts
from searchcrawl.selftest.site import FIRST, LATER, BuiltInSite
from searchcrawl.selftest.stored import Select
from searchcrawl.store.states import FetchState

#: Rounds at once.
_AT_ONCE: Final = 2
#: Kills of one crawl.
_MOST_KILLS: Final = 3
#: How often kills that did not strike are made up for.
_MORE_ROUNDS: Final = 5
_UNDISTURBED: Final = "undisturbed"
#: It comes every five seconds, in longer crawls only.
_NOT_COUNTED_ON: Final = frozenset({"lease.renew"})
#: Counts that neither the order of visits nor documents sent once more can change.
EXACT_COUNTS: Final = (
    "fetched",
    "fetch_failures",
    "new",
    "changed",
    "not_modified",
    "unchanged",
    "deleted",
    "non_indexable",
)


@dataclass(frozen=True, slots=True)
class Kill:
    """How a start is killed: at the n-th passing of a failpoint, or so many seconds after its first request."""

    at: str | float

    def __str__(self) -> str:
        if isinstance(self.at, float):
            return f"{self.at:.2f} s"
        name, _, number = self.at.partition(":")
        return f"{name} {number}"


@dataclass(slots=True)
class Crawl:
    """One crawl that was killed, and what came of it; ``differences`` is empty where it equals the undisturbed one."""

    round: str
    age: str
    kills: list[Kill] = field(default_factory=list)
    urls: int = 0
    documents: int = 0
    #: requests more than the undisturbed crawl made, and for how many URLs a killed process had them in hand
    asked_again: int = 0
    in_hand: int = 0
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    """What the undisturbed crawl of an age came to."""

    state: FinalState
    asked: Counter[str]
    counts: dict[str, int]
    passed: dict[str, int]
    seconds: float


@dataclass(slots=True, kw_only=True)
class KillRounds:
    """Rounds in ``folder``, reproducible by their ``seed`` as far as processes are; ``tell`` hears how many processes were killed."""

    folder: Path
    site: BuiltInSite
    start: Starts
    seed: int
    tell: Callable[[int], object] = lambda _: None
    kills: int = 0
    crawls: list[Crawl] = field(default_factory=list)
    _expected: dict[str, _Expected] = field(default_factory=dict)
    _names: count[int] = field(default_factory=partial(count, 1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_equal(self) -> bool:
        """Whether no crawl differs from the undisturbed one."""
        return not any(crawl.differences for crawl in self.crawls)

    def run(self, kills: int) -> None:
        """Kills so many processes; fewer where a crawl differs, or ends before its turn again and again."""
        self._crawl_undisturbed()
        chance = random.Random(self.seed)  # noqa: S311  # no secret
        for _ in range(1 + _MORE_ROUNDS):
            missing = kills - self.kills
            if missing <= 0 or not self.is_equal:
                break
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                try:
                    list(pool.map(self._round, self._plan(missing, chance)))
                except BaseException:
                    # The pool waits for its threads, and these for their processes.
                    pool.shutdown(wait=False, cancel_futures=True)
                    self.start.stop()
                    raise

    def _crawl_undisturbed(self) -> None:
        folder = self._begin(_UNDISTURBED)
        for age in (FIRST, LATER):
            self.site.show(_UNDISTURBED, age)
            passed = self.folder / f"{age}.json"
            code = self.start(folder, {"SEARCHCRAWL_FAILPOINT_COUNT": str(passed)})
            ended = time.monotonic()
            state = self._read(folder)
            crawl = Crawl(_UNDISTURBED, age, urls=len(state.rows), documents=len(state.index))
            crawl.differences = inconsistencies(state) + find_wrong_counters(self._select(folder))
            if code != 0:
                crawl.differences.insert(0, _tell_code(code, folder))
            self.crawls.append(crawl)
            if crawl.differences:
                return
            self._expected[age] = _Expected(
                state=state,
                asked=self.site.requests(_UNDISTURBED),
                counts=last_counts(self._select(folder)),
                passed=json.loads(passed.read_text("utf-8")),
                seconds=ended - self.site.find_first_request(_UNDISTURBED),
            )

    def _plan(self, kills: int, chance: random.Random) -> list[list[list[Kill]]]:
        """Rounds with so many kills in all; each has those of its first crawl and those of its second one."""
        planned: list[list[Kill]] = []
        while kills:
            age = (FIRST, LATER)[len(planned) % 2]
            number = min(kills, chance.randint(1, _MOST_KILLS))
            planned.append([self._choose(self._expected[age], chance) for _ in range(number)])
            kills -= number
        planned += [[]] * (len(planned) % 2)
        return [planned[place : place + 2] for place in range(0, len(planned), 2)]

    @staticmethod
    def _choose(expected: _Expected, chance: random.Random) -> Kill:
        if chance.random() < 0.5:
            return Kill(round(expected.seconds * chance.random(), 2))
        name = chance.choice(sorted(expected.passed.keys() - _NOT_COUNTED_ON))
        # Of hundreds of passings the first one would never be chosen.
        return Kill(f"{name}:{chance.choice([1, chance.randint(1, expected.passed[name])])}")

    def _round(self, planned: Sequence[Sequence[Kill]]) -> None:
        with self._lock:
            name = str(next(self._names))
        folder = self._begin(name)
        for age, kills in zip((FIRST, LATER), planned, strict=True):
            crawl = Crawl(name, age)
            self.site.show(folder.name, age)
            runs = ended_runs(self._select(folder))
            held = self._kill(folder, crawl, kills)
            code = 0 if ended_runs(self._select(folder)) > runs else self.start(folder, {})
            crawl.differences += self._compare(folder, crawl, held, code)
            with self._lock:
                self.crawls.append(crawl)
            if crawl.differences:
                return
        shutil.rmtree(folder)

    def _kill(self, folder: Path, crawl: Crawl, kills: Sequence[Kill]) -> set[str]:
        """Kills start after start, as long as the crawl has not ended; the URLs that processes had in hand."""
        held: set[str] = set()
        select = self._select(folder)
        runs = ended_runs(select)
        for kill in kills:
            if ended_runs(select) > runs:
                # It was struck while it was leaving: another start would be another run.
                break
            if self._strike(folder, kill) != KILLED:
                break
            crawl.kills.append(kill)
            with self._lock:
                self.kills += 1
                self.tell(self.kills)
            held |= fetching(select)
            crawl.differences += [f"after the kill at {kill}: {line}" for line in find_wrong_counters(select)]
        return held

    def _strike(self, folder: Path, kill: Kill) -> int:
        if isinstance(kill.at, float):
            return self.start(folder, {}, KillLater(self.site.expect(folder.name), kill.at))
        return self.start(folder, {"SEARCHCRAWL_FAILPOINT": kill.at})

    def _compare(self, folder: Path, crawl: Crawl, held: set[str], code: int) -> list[str]:
        """How a crawl that ended differs from the undisturbed one."""
        expected, found = self._expected[crawl.age], self._read(folder)
        crawl.urls, crawl.documents, crawl.in_hand = len(found.rows), len(found.index), len(held)
        lines = [] if code == 0 else [_tell_code(code, folder)]
        lines += differences(expected.state, found) + inconsistencies(found)
        lines += find_wrong_counters(self._select(folder))
        counts = last_counts(self._select(folder))
        lines += [
            f"{name}: {expected.counts[name]} expected, {counts.get(name)} counted"
            for name in EXACT_COUNTS
            if counts.get(name) != expected.counts[name]
        ]
        again = self.site.requests(folder.name) - expected.asked
        crawl.asked_again = again.total()
        beyond = again.keys() - self.site.with_targets(held)
        return lines + [f"{url} was asked for again, and no killed process had it in hand" for url in sorted(beyond)]

    def _begin(self, name: str) -> Path:
        """A new project; the site knows it by the name of its folder."""
        folder = self.folder / (name if name == _UNDISTURBED else f"round-{name}")
        project.write_project(folder, folder.name, self.site.origin)
        return folder

    def _read(self, folder: Path) -> FinalState:
        return read_state(project.open_project(folder), SOURCE, self._select(folder))

    @staticmethod
    def _select(folder: Path) -> Select:
        return partial(project.select, folder)


def _tell_code(code: int, folder: Path) -> str:
    return f"the crawl ended with exit code {code}: {project.quote_end(folder)}"


def describe(rounds: KillRounds, *, seconds: float, folder: Path | None) -> dict[str, Any]:
    """What ``selftest --kill9 --json`` prints; ``folder`` is where the projects are kept."""
    shown = [crawl for crawl in rounds.crawls if crawl.round != _UNDISTURBED or crawl.differences]
    shown.sort(key=lambda crawl: (len(crawl.round), crawl.round, crawl.age))
    return {
        "ok": rounds.is_equal,
        "kills": rounds.kills,
        "seed": rounds.seed,
        "seconds": round(seconds, 1),
        "crawls": [
            {
                "round": crawl.round,
                "kind": crawl.age,
                "killed_at": [str(kill) for kill in crawl.kills],
                "urls": crawl.urls,
                "documents": crawl.documents,
                "in_hand": crawl.in_hand,
                "asked_again": crawl.asked_again,
                "differences": crawl.differences,
            }
            for crawl in shown
        ],
        "folder": None if folder is None else str(folder),
    }


_PARTS: Final = ("to_fetch", "fetched", "fetch_failures", "rejected")
_RUN: Final = "SELECT id, source_id, horizon_ms, ended_ms, counts FROM runs ORDER BY id DESC LIMIT 1"
_ROWS: Final = "SELECT source_id, fetch_state, due_ms, code, redirects, failed_runs, run_id FROM urls"


def find_wrong_sums(counts: Mapping[str, int]) -> list[str]:
    """What does not add up in the counters of a run."""
    parts = {name: counts[name] for name in _PARTS}
    wrong = [f"{name} is {number}" for name, number in parts.items() if number < 0]
    if counts["discovered"] != sum(parts.values()):
        wrong.append(f"discovered is {counts['discovered']}, not the sum of {parts}")
    return wrong


def find_wrong_counters(select: Select) -> list[str]:
    """What is wrong with the counters of the last run of any source, after ``kill -9`` as well.

    Those of a run that goes on are compared with the table; rows may have changed since another one ended.
    """
    found = select(_RUN)
    if not found:
        return []
    (run,) = found
    counts = orjson.loads(run["counts"])
    if not counts:
        # Killed while the run was begun.
        return []
    wrong = find_wrong_sums(counts)
    if counts.get("miscounted"):
        wrong.append(f"the run says itself that {counts['miscounted']} URLs are counted wrongly")
    if run["ended_ms"] is None:
        rows = [row for row in select(_ROWS) if row["source_id"] == run["source_id"]]
        there = Counter(name for row in rows if (name := _find_class(row, run["id"], run["horizon_ms"])))
        wrong += [
            f"{name} is {counts[name]}, the table has {there[name]}" for name in _PARTS if counts[name] != there[name]
        ]
    return wrong


def _find_class(row: Mapping[str, Any], run_id: int, horizon_ms: int) -> str | None:
    is_due = row["due_ms"] is not None and row["due_ms"] <= horizon_ms
    if row["fetch_state"] != FetchState.SETTLED or is_due:
        return "to_fetch"
    if row["run_id"] != run_id:
        return None
    if row["failed_runs"] or row["code"] == Code.SET_ASIDE:
        return "fetch_failures"
    refused = facts_of(row["code"]).kind is CodeClass.REFUSAL
    return "rejected" if refused and row["redirects"] is None else "fetched"
