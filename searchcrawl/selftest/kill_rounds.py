"""``selftest --kill9``: crawls the built-in site, kills the crawls at random points, and compares with one undisturbed.

A round is a project of its own: the site is crawled, changes, and is crawled again. Each of both crawls is killed once or
a few times, at a failpoint or at a moment, each start recovering from the kill before it; then it may end.

Compared is also whether the counters of the last run add up, and are those of its URL table (J1).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import searchcrawl
from searchcrawl.selftest.final_state import (
    FinalState,
    Select,
    differences,
    ended_runs,
    fetching,
    find_wrong_counters,
    inconsistencies,
    last_counts,
    read_state,
    select_from_file,
)
from searchcrawl.selftest.site import ADDRESS, FIRST, LATER, BuiltInSite
from searchcrawl.sources.loading import load_project

SOURCE: Final = "selftest"
KILLED: Final = -signal.SIGKILL
#: A process that takes longer hangs.
_MOST_SECONDS: Final = 120.0
#: How often it is looked at whether a process has ended before it did anything.
_LOOK_SECONDS: Final = 0.1
_OUTPUT: Final = "output.txt"
#: Of the end of what a process said.
_SHOWN_LINES: Final = 3
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


class KillLater(NamedTuple):
    """SIGKILL, so many seconds after ``begun`` was set, if the process has not ended before."""

    begun: threading.Event
    seconds: float


def _write_project(folder: Path, visitor: str, origin: str) -> None:
    """Writes a project that is known to the site as ``visitor``; its cache is full several times in a crawl."""
    files = {
        "scrapy.cfg": "[settings]\ndefault = searchcrawl.settings\n",
        "searchcrawl.toml": (
            f'contact = "{origin}/"\nuser_agent = "{visitor}"\n\n'
            '[cache]\nthreshold_mb = 0.03\n\n[index]\ntype = "local"\n'
        ),
        f"sources/{SOURCE}.toml": (
            f'type = "web"\n\n[start]\nurls = ["{origin}/"]\n\n[scope]\ninclude_hosts = ["={ADDRESS}"]\ndepth = 6\n\n'
            f'[fetch]\ndelay_seconds = 0\nretries = 0\nprivate_networks = ["{ADDRESS}/32"]\n'
        ),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class Processes:
    """Starts crawls as processes of their own; any thread may call it."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def __call__(self, folder: Path, variables: Mapping[str, str], kill: KillLater | None = None) -> int:
        """Crawls the project in ``folder``, with these variables; the exit code, negative for a signal."""
        with (folder / _OUTPUT).open("ab") as output:
            process = self._start(folder, variables, output)
        try:
            while kill is not None and process.poll() is None and not kill.begun.wait(_LOOK_SECONDS):
                pass
            return process.wait(_MOST_SECONDS if kill is None else kill.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        except BaseException:
            # Ctrl-C, which the process does not get.
            process.kill()
            process.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(process)

    def stop(self) -> None:
        """Ends all crawls that run, and lets none begin."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()

    def _start(self, folder: Path, variables: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SCRAPY_", "SEARCHCRAWL_"))}
        package = str(Path(searchcrawl.__file__).resolve().parents[1])
        paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(  # noqa: S603 (our own command)
                [sys.executable, "-m", "searchcrawl", "crawl", SOURCE],
                cwd=folder,
                env={**kept, "PYTHONPATH": paths, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the process that asks; it ends these.
                start_new_session=True,
            )
            self._running.add(process)
        return process


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
class KilledCrawl:
    """One crawl that was killed, and what came of it, as ``--json`` has it.

    ``differences`` is empty where it equals the undisturbed one, ``kind`` is the age of the site. ``asked_again`` are the
    requests more than the undisturbed crawl made, ``in_hand`` the URLs that killed processes were visiting.
    """

    round: str
    kind: str
    killed_at: list[str] = field(default_factory=list)
    urls: int = 0
    documents: int = 0
    in_hand: int = 0
    asked_again: int = 0
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
    seed: int
    tell: Callable[[int], object] = lambda _: None
    start: Processes = field(default_factory=Processes)
    kills: int = 0
    crawls: list[KilledCrawl] = field(default_factory=list)
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
            crawl = KilledCrawl(_UNDISTURBED, age, urls=len(state.rows), documents=len(state.index))
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
            crawl = KilledCrawl(name, age)
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

    def _kill(self, folder: Path, crawl: KilledCrawl, kills: Sequence[Kill]) -> set[str]:
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
            crawl.killed_at.append(str(kill))
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

    def _compare(self, folder: Path, crawl: KilledCrawl, held: set[str], code: int) -> list[str]:
        """How a crawl that ended differs from the undisturbed one."""
        expected, found = self._expected[crawl.kind], self._read(folder)
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
        _write_project(folder, folder.name, self.site.origin)
        return folder

    def _read(self, folder: Path) -> FinalState:
        return read_state(load_project(folder), SOURCE, self._select(folder))

    @staticmethod
    def _select(folder: Path) -> Select:
        return partial(select_from_file, folder / "var" / "searchcrawl.db")


def _tell_code(code: int, folder: Path) -> str:
    """The exit code of a crawl, with the last lines that it said, or logged as errors."""
    lines: list[str] = []
    for path in (folder / _OUTPUT, *sorted(folder.glob("var/log/*.log"))):
        text = path.read_text("utf-8", "replace") if path.exists() else ""
        lines += [line for line in text.splitlines() if path.name == _OUTPUT or "ERROR" in line]
    return f"the crawl ended with exit code {code}: {' | '.join(lines[-_SHOWN_LINES:])}"


def describe(rounds: KillRounds, *, seconds: float, folder: Path | None) -> dict[str, Any]:
    """What ``selftest --kill9 --json`` prints; ``folder`` is where the projects are kept."""
    shown = [crawl for crawl in rounds.crawls if crawl.round != _UNDISTURBED or crawl.differences]
    shown.sort(key=lambda crawl: (len(crawl.round), crawl.round, crawl.kind))
    return {
        "ok": rounds.is_equal,
        "kills": rounds.kills,
        "seed": rounds.seed,
        "seconds": round(seconds, 1),
        "crawls": [asdict(crawl) for crawl in shown],
        "folder": None if folder is None else str(folder),
    }
