"""Rounds of one kind: a crawl is cut off, run again to its end, and compared with one that nobody disturbed."""

from __future__ import annotations

import json
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests import kill_site
from tests.crawl_forks import Forks
from tests.final_state import FinalState, differences, fetching, inconsistencies, last_counts, read_state
from tests.site.client import SiteProcess

KILLED: Final = -signal.SIGKILL
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
            object.__setattr__(self, "name", "_".join(str(blow) for blow in self.blows).replace(":", "-"))

    def earlier(self) -> Cut | None:
        """The same at the passing before, where a run passed a failpoint less often than the undisturbed one."""
        point, _, number = str(self.blows[0]).partition(":")
        if len(self.blows) > 1 or not number.isdigit() or int(number) < 2:
            return None
        return Cut((f"{point}:{int(number) - 1}",), self.code, f"{self.name}-earlier")


@dataclass
class Kind:
    """What the rounds of one kind have in common.

    ``prepare`` makes the project of a round in a folder, with a source of the round's name or of
    ``source``. ``reference`` starts the undisturbed run.
    """

    forks: Forks
    site: SiteProcess
    folder: Path
    prepare: Callable[[Path, str], None]
    source: str | None = None
    expected: FinalState = field(init=False)
    asked: Counter[str] = field(init=False)
    #: How often each failpoint is passed.
    passed: dict[str, int] = field(init=False)
    seconds: float = field(init=False)
    _held: dict[str, set[str]] = field(default_factory=dict)

    def reference(self, name: str = "undisturbed") -> None:
        """Runs the crawl without a disturbance, counting failpoints."""
        folder = self._project(name)
        counts = folder / "failpoints.json"
        started = time.monotonic()
        code = self._crawl(folder, name, SEARCHCRAWL_FAILPOINT_COUNT=str(counts))
        self.seconds = time.monotonic() - started
        assert code == 0, _tail(folder)
        self.expected = read_state(folder, self.source or name)
        assert not inconsistencies(self.expected)
        self.asked = kill_site.requests(self.site)[name]
        self.passed = json.loads(counts.read_text("utf-8"))

    def rounds(self, cuts: Iterable[Cut]) -> list[str]:
        """Runs a round for each cut, some at once; what went wrong, a line each."""
        wanted = list(cuts)
        with ThreadPoolExecutor(PROCESSES) as pool:
            found = [line for lines in pool.map(self._round, wanted) for line in lines]
        asked = kill_site.requests(self.site)
        for name, held in self._held.items():
            again = asked[name] - self.asked
            allowed = kill_site.with_targets(self.site, held)
            found += [f"{name}: {url} was asked for again" for url in sorted(again.keys() - allowed)]
        return found

    def _round(self, cut: Cut) -> list[str]:
        folder = self._project(cut.name)
        name = self.source or cut.name
        held = self._held.setdefault(cut.name, set())
        for blow in cut.blows:
            code = self._blow(folder, cut.name, blow)
            earlier = cut.earlier()
            if code == 0 and earlier is not None:
                return self._round(earlier)
            if code != cut.code:
                return [f"{cut.name}: exit {code} at {blow}; {_tail(folder)}"]
            held |= fetching(folder)
        code = self._crawl(folder, cut.name)
        if code != 0:
            return [f"{cut.name}: exit {code} when started again; {_tail(folder)}"]
        state = read_state(folder, name)
        lines = differences(self.expected, state)[:_SHOWN] + inconsistencies(state)[:_SHOWN]
        kill_site.call_agent(folder, "afterwards")
        code = self._crawl(folder, cut.name)
        sent = last_counts(folder)["indexed"]
        if code != 0 or sent != 0:
            lines.append(f"the run after it: exit {code}, sent {sent}; {_tail(folder)}")
        if not lines:
            shutil.rmtree(folder)
        return [f"{cut.name}: {line}" for line in lines]

    def _blow(self, folder: Path, name: str, blow: str | float) -> int:
        if isinstance(blow, str):
            return self._crawl(folder, name, SEARCHCRAWL_FAILPOINT=blow)
        running = self.forks.start(folder, "crawl", self.source or name)
        timer = threading.Timer(blow, running.signal, [signal.SIGKILL])
        timer.start()
        try:
            return running.wait()
        finally:
            timer.cancel()

    def _crawl(self, folder: Path, name: str, **variables: str) -> int:
        return self.forks.run(folder, "crawl", self.source or name, **variables)

    def _project(self, name: str) -> Path:
        folder = self.folder / name
        self.prepare(folder, name)
        return folder


def cuts(passed: dict[str, int], *, first: int = 2, skip: Sequence[str] = ()) -> list[Cut]:
    """Kills at the first passings of each failpoint, and at the last."""
    found = []
    for name, times in sorted(passed.items()):
        if name not in skip:
            wanted = {*range(1, min(first, times) + 1), *([times] if first > 1 else [])}
            found += [Cut((f"{name}:{number}",)) for number in sorted(wanted)]
    return found


def random_cuts(count: int, seconds: float, seed: int) -> list[Cut]:
    """Kills at random moments of a run that takes so long."""
    chance = random.Random(seed)
    return [Cut((round(chance.uniform(0.05, 0.8) * seconds, 3),)) for _ in range(count)]


def initial(forks: Forks, site: SiteProcess, folder: Path, **settings: Any) -> Kind:
    """First crawls of the site."""

    def prepare(project: Path, name: str) -> None:
        kill_site.project(project, site, "demo", settings=settings)
        kill_site.call_agent(project, name)

    return Kind(forks, site, folder, prepare, source="demo")


def maintenance(forks: Forks, site: SiteProcess, folder: Path, template: Path) -> Kind:
    """Second crawls, of a project that was crawled before the site changed."""

    def prepare(project: Path, name: str) -> None:
        shutil.copytree(template, project)
        kill_site.call_agent(project, name)

    return Kind(forks, site, folder, prepare, source="demo")


def _tail(folder: Path) -> str:
    logs = sorted(folder.glob("var/log/*.log"))
    text = logs[0].read_text("utf-8") if logs else (folder / "output.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if any(word in line for word in ("ERROR", "Traceback", "Error"))]
    return f"{folder}: " + " | ".join((lines or text.splitlines())[-4:])
