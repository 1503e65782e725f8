"""Rounds of one kind: a crawl is cut off, run again to its end, and compared with one that nobody disturbed."""

from __future__ import annotations

import json
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from searchcrawl.selftest.final_state import FinalState, differences, inconsistencies
from searchcrawl.selftest.kill_rounds import EXACT_COUNTS, KILLED
from tests import backends, kill_site
from tests.crawl_forks import Forks
from tests.final_state import ended_runs, fetching, find_wrong_counters, last_counts, read_state
from tests.site.client import SiteProcess

_SHOWN: Final = 8
#: Commands at once, on two processors.
PROCESSES: Final = 3


@dataclass(frozen=True)
class Cut:
    """How a crawl is cut off, start by start: values of SEARCHCRAWL_FAILPOINT, or seconds until SIGKILL."""

    blows: tuple[str | float, ...]
    code: int = KILLED
    #: For folders and as the product of User-Agent.
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            name = "_".join(str(blow) for blow in self.blows).replace(":", "-").replace(".", "-")
            object.__setattr__(self, "name", name)

    def earlier(self) -> Cut | None:
        """One that strikes before, for a run that ended without having been struck."""
        for place, blow in reversed([*enumerate(self.blows)]):
            sooner = _sooner(blow)
            if sooner is not None:
                blows = (*self.blows[:place], sooner, *self.blows[place + 1 :])
                return Cut(blows, self.code, f"{self.name}-e")
        return None


def _sooner(blow: str | float) -> str | float | None:
    if isinstance(blow, float):
        return blow / 2 if blow > 0.02 else None
    point, _, number = blow.partition(":")
    return f"{point}:{int(number) - 1}" if number.isdigit() and int(number) > 1 else None


@dataclass
class Kind:
    """What the rounds of one kind have in common.

    ``prepare`` makes the project of a round in a folder, with a source of that name, or named
    ``source``. ``reference`` is the undisturbed run, and comes first.
    """

    forks: Forks
    site: SiteProcess
    folder: Path
    prepare: Callable[[Path, str], None]
    source: str | None = None
    #: whether requests and counts are always the same: not where records that are needed again were given up
    exact: bool = True
    #: whether ``verify`` has a say as well
    verifies: bool = False
    expected: FinalState = field(init=False)
    asked: Counter[str] = field(init=False)
    counts: dict[str, int] = field(init=False)
    #: How often each failpoint is passed.
    passed: dict[str, int] = field(init=False)
    seconds: float = field(init=False)
    _held: dict[str, set[str]] = field(default_factory=dict)

    def reference(self, name: str = "undisturbed") -> None:
        """Runs the crawl without a disturbance, counting failpoints."""
        folder = self._project(name)
        counts = self.folder / f"{name}.json"
        running = self.forks.start(folder, "crawl", self.source or name, SEARCHCRAWL_FAILPOINT_COUNT=str(counts))
        # Not before: the process that forks may still be loading.
        started = time.monotonic()
        code = running.wait()
        self.seconds = time.monotonic() - started
        assert code == 0, _tail(folder)
        self.expected = read_state(folder, self.source or name)
        assert not inconsistencies(self.expected)
        self.asked = kill_site.requests(self.site)[name]
        self.passed = json.loads(counts.read_text("utf-8"))
        self.counts = last_counts(folder)

    def crawl(self, name: str, **variables: str) -> int:
        """One run of the project of that name, made where it is not there yet; the exit code."""
        return self.forks.run(self._project(name), "crawl", self.source or name, **variables)

    def rounds(self, cuts: Sequence[Cut]) -> list[str]:
        """Runs a round for each cut, some at once; what went wrong, a line each."""
        # Names of rounds are unique in one call only.
        self.site.clear_log()
        with ThreadPoolExecutor(PROCESSES) as pool:
            found = [line for lines in pool.map(self._round, cuts) for line in lines]
        if self.exact:
            found += self._asked_again()
        self._held.clear()
        return found

    def _asked_again(self) -> list[str]:
        """Requests beyond those of the undisturbed run for rows that nobody had in hand when a process died."""
        found: list[str] = []
        asked = kill_site.requests(self.site)
        for name, held in self._held.items():
            again = asked[name] - self.asked
            allowed = kill_site.with_targets(self.site, held)
            found += [f"{name}: {url} was asked for again" for url in sorted(again.keys() - allowed)]
        return found

    def cut_off(self, cut: Cut) -> list[str]:
        """Starts a crawl of its own and cuts it off; what went wrong."""
        folder = self._project(cut.name)
        held = self._held.setdefault(cut.name, set())
        ended = ended_runs(folder)
        for blow in cut.blows:
            code = self._blow(folder, cut.name, blow)
            if code == KILLED and ended_runs(folder) > ended:
                # Struck while the process was leaving: the run was over, and the next start is another run.
                code = 0
            if code != cut.code:
                return [f"{cut.name}: exit {code} at {blow}; {_tail(folder)}"]
            held |= fetching(folder)
            if wrong := find_wrong_counters(folder):
                return [f"{cut.name}: after {blow}: {line}" for line in wrong]
        return []

    def resume(self, cut: Cut) -> list[str]:
        """Starts it again, and once more; how it differs from the undisturbed crawl."""
        folder = self.folder / cut.name
        code = self.crawl(cut.name)
        if code != 0:
            return [f"{cut.name}: exit {code} when started again; {_tail(folder)}"]
        state = read_state(folder, self.source or cut.name)
        wrong = find_wrong_counters(folder)
        lines = (
            wrong + differences(self.expected, state, with_cache=self.exact)[:_SHOWN] + inconsistencies(state)[:_SHOWN]
        )
        # A killed run goes on as the same; one that failed has ended, and another follows.
        if cut.code == KILLED and self.exact:
            counts = last_counts(folder)
            lines += [
                f"{name}: {self.counts[name]} expected, {counts[name]} counted"
                for name in EXACT_COUNTS
                if counts[name] != self.counts[name]
            ]
        if self.verifies and (code := self.forks.run(folder, "verify")) != 0:
            lines.append(f"verify ends with {code}; {_tail(folder)}")
        kill_site.call_agent(folder, "afterwards")
        code = self.crawl(cut.name)
        sent = last_counts(folder)["indexed"]
        if code != 0 or sent != 0:
            lines.append(f"the run after it: exit {code}, sent {sent}; {_tail(folder)}")
        if not lines:
            backends.current.remove(folder)
        return [f"{cut.name}: {line}" for line in lines]

    def _round(self, cut: Cut) -> list[str]:
        lines = self.cut_off(cut)
        earlier = cut.earlier()
        if lines and ": exit 0 at " in lines[0] and earlier is not None:
            return self._round(earlier)
        return lines or self.resume(cut)

    def _blow(self, folder: Path, name: str, blow: str | float) -> int:
        if isinstance(blow, str):
            return self.crawl(name, SEARCHCRAWL_FAILPOINT=blow)
        running = self.forks.start(folder, "crawl", self.source or name)
        timer = threading.Timer(blow, running.signal, [signal.SIGKILL])
        timer.start()
        try:
            return running.wait()
        finally:
            timer.cancel()

    def _project(self, name: str) -> Path:
        folder = self.folder / name
        if not folder.exists():
            self.prepare(folder, name)
        return folder


def cuts(passed: dict[str, int], *, first: int = 1, last: bool = True, skip: Sequence[str] = ()) -> list[Cut]:
    """Kills at the first passings of each failpoint, and at the last one."""
    found = []
    for name, times in sorted(passed.items()):
        if name not in skip:
            wanted = {*range(1, min(first, times) + 1), *([times] if last else [])}
            found += [Cut((f"{name}:{number}",)) for number in sorted(wanted)]
    return found


def cuts_at_any(passed: dict[str, int], *, first: int, step: int) -> list[Cut]:
    """Kills at the n-th failpoint of a run, whatever its name, for each n-th of ``step``; each also with another kill after it.

    The second one strikes while the next start recovers, or later.
    """
    last = sum(passed.values())
    found = []
    for number in range(first, last + 1, step):
        # Beyond it the start may have ended before: it has less to do.
        second = random.Random(number).randint(1, max(1, (last - number) // 2))
        found += [Cut((f"any:{number}",)), Cut((f"any:{number}", f"any:{second}"))]
    return found


def chains(texts: Sequence[str], passed: dict[str, int]) -> list[Cut]:
    """A round for each text: its failpoints by turns, one kill in each start, ``:last`` for the last passing of a run."""
    return [
        Cut(tuple(blow.replace("last", str(passed.get(blow.partition(":")[0]))) for blow in text.split()))
        for text in texts
    ]


def random_cuts(count: int, seconds: float, seed: int) -> list[Cut]:
    """Kills at random moments of a run that takes so long, no two at the same one: each has a folder of its own."""
    chance = random.Random(seed)
    moments = range(round(0.05 * seconds * 1000), round(0.8 * seconds * 1000))
    return [Cut((moment / 1000,)) for moment in chance.sample(moments, count)]


def initial(
    forks: Forks, site: SiteProcess, folder: Path, *, cache: dict[str, Any] | None = None, pages: int = 40
) -> Kind:
    """First crawls of the site, with so many generated pages, into local indexes."""

    def prepare(project: Path, name: str) -> None:
        _write_project(project, site, cache, pages)
        kill_site.call_agent(project, name)

    return Kind(forks, site, folder, prepare, source="demo", exact=_keeps(cache))


def maintenance(forks: Forks, site: SiteProcess, folder: Path, template: Path, *, exact: bool = True) -> Kind:
    """Second crawls, of a project that was crawled before the site changed."""

    def prepare(project: Path, name: str) -> None:
        backends.current.copy(template, project)
        kill_site.call_agent(project, name)

    return Kind(forks, site, folder, prepare, source="demo", exact=exact)


def after_change(
    forks: Forks, site: SiteProcess, folder: Path, *, cache: dict[str, Any] | None = None, pages: int = 40
) -> Kind:
    """Second crawls of a site that has its first pages now, and is crawled and changed here."""
    template = _write_project(folder / "template", site, cache, pages)
    assert forks.run(template, "crawl", "demo") == 0
    kill_site.change(site, pages=pages)
    return maintenance(forks, site, folder, template, exact=_keeps(cache))


def with_full_cache(
    forks: Forks, site: SiteProcess, folder: Path, *, cache: dict[str, Any] | None = None, pages: int = 40
) -> Kind:
    """Third crawls, whose cache is full of what is superseded and what is not; the site has its first pages now."""
    template = _write_project(folder / "template", site, cache, pages)
    assert forks.run(template, "crawl", "demo") == 0
    kill_site.change(site, pages=pages)
    assert forks.run(template, "crawl", "demo") == 0
    size = sum(path.stat().st_size for path in (template / "var" / "cache").rglob("*.gz"))
    settings = template / "searchcrawl.toml"
    text = re.sub(r"(?m)^threshold_mb = .*$", rf"\g<0>\nmax_gb = {size / 1024**3}", settings.read_text("utf-8"))
    settings.write_text(text, "utf-8")
    for number in range(0, pages, 3):
        kill_site.change_generated(site, number, pages=pages)
    return maintenance(forks, site, folder, template)


def _write_project(folder: Path, site: SiteProcess, cache: dict[str, Any] | None, pages: int) -> Path:
    settings = {"cache": cache} if cache else None
    # Without its record the one that stays is fetched again, in the next run, before its near copies leave.
    copies = {} if _keeps(cache) else {"copies": {"near": "group"}}
    return kill_site.project(folder, site, "demo", settings=settings, pages=pages, **copies)


def _keeps(cache: dict[str, Any] | None) -> bool:
    """Whether the cache keeps what the index has."""
    return cache is None or cache.get("preserve", True)


def in_solr(forks: Forks, site: SiteProcess, folder: Path, url: str) -> Kind:
    """First crawls into one core of a Solr, each of a source of its own."""

    def prepare(project: Path, name: str) -> None:
        kill_site.project(project, site, name, settings={"index": {"type": "solr", "url": url}})

    return Kind(forks, site, folder, prepare)


def _tail(folder: Path) -> str:
    logs = sorted(folder.glob("var/log/*.log"))
    text = logs[0].read_text("utf-8") if logs else (folder / "output.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if any(word in line for word in ("ERROR", "Traceback", "Error"))]
    return f"{folder}: " + " | ".join((lines or text.splitlines())[-4:])
