"""Commands that are killed at each failpoint that they pass, and maybe once more while the next call recovers.

A scenario prepares a project; copies of it are killed. What each ends with is compared with one that nobody disturbed.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from searchcrawl import failpoints, urls
from searchcrawl.selftest.final_state import FinalState, differences, inconsistencies
from searchcrawl.sources.loading import load_project
from tests import backends
from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_quarantine import decide, listed
from tests.acceptance.support_stories import page, source
from tests.crawl_forks import COMMANDS
from tests.final_state import find_wrong_counters, read_state
from tests.site.client import SiteProcess, configure
from tests.site.expected import short
from tests.tampering import tamper

#: What commands alone pass; crawls pass all others (test_kill.py).
OF_COMMANDS: Final = frozenset(
    name
    for name in failpoints.NAMES
    if name.startswith(("forget.", "source.", "recrawl.")) or name in {*failpoints.OF_REPAIRS, *failpoints.OF_PLANS}
)
KILLED: Final = -signal.SIGKILL
#: Projects at once, on two processors.
_AT_ONCE: Final = 3
_SHOWN: Final = 6
PAGES: Final = range(14)
#: Pages that leave in the scenarios about removals.
GONE: Final = (1, 2, 3)
#: Pages whose documents are removed from the index behind the crawler's back, altered, and added.
_SPOILT: Final = (
    ("/1.html", "/2.html", "/target.html"),
    ("/3.html", "/copy-1.html"),
    ("/copy-2.html", "/hidden.html", "/odd.html", "/odder.html"),
)
_COPY: Final = "the very same words on two pages"

Words = tuple[str, ...]
Done = subprocess.CompletedProcess[str]


def _call(project: CrawlProject, words: Words) -> Done:
    return project.command(*words)


@dataclass(frozen=True, slots=True)
class Scenario:
    """``prepare`` does what comes before the command and returns its words; ``code`` is how that ends.

    ``again`` is what a user calls after a kill, until it ends so.
    """

    prepare: Callable[[CrawlProject], Words]
    code: int = 0
    again: Callable[[CrawlProject, Words], Done] = _call


@dataclass(slots=True)
class CommandKills:
    """The rounds of one scenario in ``folder``; ``reference`` comes first."""

    scenario: Scenario
    site: SiteProcess
    folder: Path
    template: CrawlProject = field(init=False)
    words: Words = field(init=False)
    expected: FinalState = field(init=False)
    #: How many failpoints the command passes, and which.
    passed: Mapping[str, int] = field(init=False)
    #: How many rounds completed before they were killed.
    missed: int = 0

    def reference(self, name: str) -> None:
        """Prepares the project, and runs the command without a disturbance in a copy of it."""
        host = f"{name.replace(' ', '-').replace('--', '')}.acme.test"
        fill(self.site, host)
        limits = {"max_delete_documents": 0} if self.scenario in WAITING else {}
        tables = {**source(self.site, host), "lifecycle": limits}
        # A page has about 2 KB: several deliveries, and several segments.
        caches = {"cache": {"threshold_mb": 0.005}}
        self.template = new_project(self.folder / "template", self.site, project=caches, **tables)
        assert self.template.crawl().exit_code == 0
        self.words = self.scenario.prepare(self.template)
        project, counts = self._copy("undisturbed"), self.folder / "counts.json"
        done = COMMANDS.run(project.folder, *self.words, SEARCHCRAWL_FAILPOINT_COUNT=str(counts))
        assert done.returncode == self.scenario.code, done.stderr
        self.passed = json.loads(counts.read_text("utf-8"))
        assert self.follow(project) == []
        self.expected = read_state(project.folder, project.name)

    def rounds(self, kills: Iterable[tuple[int, ...]]) -> list[str]:
        """A round for each: the numbers of the failpoints at which call after call dies; what went wrong, a line each."""
        wanted = list(kills)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            lines = [line for lines in pool.map(self._round, wanted) for line in lines]
        return [*lines, *([f"{self.missed} of {len(wanted)} were not killed"] if self.missed > len(wanted) / 2 else [])]

    def choose(self, *, twice: bool, seed: int = 0) -> list[tuple[int, ...]]:
        """A kill at each failpoint that the command passes, each followed by one during the recovery where asked."""
        chance, last = random.Random(seed), sum(self.passed.values())
        if not twice:
            return [(number,) for number in range(1, last + 1)]
        return [(number, chance.randint(1, last)) for number in range(1, last + 1)]

    def follow(self, project: CrawlProject) -> list[str]:
        """What is wrong with what must hold after any command, and with the crawl that follows."""
        lines = self._verify(project, "afterwards")
        ended = project.crawl()
        lines += [] if ended.exit_code in {0, 9} else [f"the crawl after it: exit {ended.exit_code}; {ended.errors}"]
        lines += self._verify(project, "after the crawl") + find_wrong_counters(project.folder)
        return lines + inconsistencies(read_state(project.folder, project.name))[:_SHOWN]

    def _round(self, kills: tuple[int, ...]) -> list[str]:
        name = "-".join(map(str, kills))
        project = self._copy(f"killed-{name}")
        codes = []
        for number in kills:
            kill = {"SEARCHCRAWL_FAILPOINT": f"any:{number}"}
            codes.append(COMMANDS.run(project.folder, *self.words, **kill).returncode)
        self.missed += codes[0] != KILLED
        done = self.scenario.again(project, self.words)
        # Threads pass a few failpoints more or less: it may have completed before.
        lines = [] if codes[0] in {KILLED, self.scenario.code} else [f"exit {codes[0]} instead of a kill"]
        lines += [] if done.returncode == self.scenario.code else [f"exit {done.returncode} at the end; {done.stderr}"]
        lines += self.follow(project)
        lines += differences(self.expected, read_state(project.folder, project.name))[:_SHOWN]
        if not lines:
            backends.current.remove(project.folder)
        return [f"{' '.join(self.words)}, killed at {name}: {line}" for line in lines]

    def _verify(self, project: CrawlProject, when: str) -> list[str]:
        done = project.command("verify", project.name)
        return [] if done.returncode == 0 else [f"verify {when} ends with {done.returncode}: {done.stdout[-500:]}"]

    def _copy(self, name: str) -> CrawlProject:
        folder = backends.current.copy(self.template.folder, self.folder / name)
        return CrawlProject(folder=folder, site=self.site, name=self.template.name)


def fill(site: SiteProcess, host: str) -> None:
    """A start page, pages with a text of their own, two copies, a redirect, one that is hidden, one that is missing."""
    paths = [f"/{number}.html" for number in PAGES]
    others = ("/copy-1.html", "/copy-2.html", "/moved.html", "/hidden.html", "/missing.html")
    site.set_page(host, "/", page("start", *paths, *others))
    for number, path in enumerate(paths):
        head = f'<meta name="dc.creator" content="author {number % 3}">'
        site.set_page(host, path, page(f"page {number}", text=f"word{number} " * 300, head=head))
    for path in others[:2]:
        site.set_page(host, path, page("copy", text=_COPY))
    site.set_page(host, "/moved.html", "", status=301, headers={"Location": "/target.html"})
    site.set_page(host, "/target.html", page("target"))
    site.set_page(host, "/hidden.html", page("hidden", head='<meta name="robots" content="noindex">'))


def _edit(project: CrawlProject) -> None:
    (host,) = {url.partition("/")[0] for url in project.indexed()}
    edit = {"attributes": {"meta:dc.creator": "writer"}, "keep": {"exclude_urls": ["*/1*.html"]}}
    project.edit(**source(project.site, host), **edit)


def _plan(project: CrawlProject) -> Words:
    _edit(project)
    return ("plan", project.name)


def _apply(project: CrawlProject) -> Words:
    _edit(project)
    made = project.ask("plan", project.name)
    return ("apply", made["plan"])


def _apply_again(project: CrawlProject, words: Words) -> Done:
    done = project.command(*words)
    if done.returncode != 2:
        return done
    # It died before it could note that it had begun, or after it was done: what is left to do is planned anew.
    again = project.ask("plan", project.name)
    return project.command("apply", again["plan"])


def _url(project: CrawlProject, path: str) -> str:
    return project.site.url(project.indexed()[0].partition("/")[0], path)


def _forget(project: CrawlProject) -> Words:
    return ("forget", _url(project, "/copy-1.html"), _url(project, "/target.html"), _url(project, "/2.html"))


def _forget_pattern(project: CrawlProject) -> Words:
    return ("forget", "--pattern", "*/1*.html", "--yes")


def _delete(project: CrawlProject) -> Words:
    return ("delete", project.name, "--yes")


def _recrawl(project: CrawlProject) -> Words:
    return ("recrawl", project.name, "--all")


def _lose(project: CrawlProject) -> None:
    for number in GONE:
        project.site.delete_page(project.indexed()[0].partition("/")[0], f"/{number}.html")
    project.crawl()


def _undelete(project: CrawlProject) -> Words:
    _lose(project)
    run = project.ask("status", project.name)["run"]
    return ("undelete", str(run["id"]))


def _approve(project: CrawlProject) -> Words:
    _lose(project)
    assert len(listed(project)) == len(GONE)
    return ("quarantine", "approve", project.name)


def _reject(project: CrawlProject) -> Words:
    return (*_approve(project)[:1], "reject", project.name)


def _restore(project: CrawlProject) -> Words:
    _approve(project)
    decide(project, "reject")
    return ("quarantine", "restore", project.name)


def _resend(project: CrawlProject) -> Words:
    backends.current.lose_index(project.folder)
    return ("resend", project.name)


def _flush(project: CrawlProject) -> Words:
    (host,) = {url.partition("/")[0] for url in project.indexed()}
    for number in PAGES:
        text = " ".join(f"newer{number}x{place}" for place in range(200))
        project.site.set_page(host, f"/{number}.html", page(f"newer {number}", text=text))
    before = (project.folder / "searchcrawl.toml").read_text("utf-8")
    configure(project.folder, index=absent_index())
    ended = project.crawl("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=1")
    assert ended.exit_code == 6, ended
    (project.folder / "searchcrawl.toml").write_text(before, "utf-8")
    return ("flush", project.name)


def _repair(project: CrawlProject) -> Words:
    """Documents are gone from the index, altered, and added to it: by others, or again."""
    versions = project.versions()
    removed, altered, added = ([_url(project, path) for path in paths] for paths in _SPOILT)
    put = {}
    for url in (*altered, *added):
        version = versions.get(short(url), max(versions.values()))
        fields = {"url": url, "access_url": url, "source": project.name, "checksum": "00", "crawl_version": version}
        put[urls.document_id(project.name, url)] = fields
    ids = [urls.document_id(project.name, url) for url in removed]
    tamper(load_project(project.folder), removed=ids, put=put)
    return ("verify", project.name, "--repair")


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "plan": Scenario(_plan),
    "apply": Scenario(_apply, again=_apply_again),
    "forget": Scenario(_forget),
    "forget --pattern": Scenario(_forget_pattern),
    "delete": Scenario(_delete),
    "recrawl": Scenario(_recrawl),
    "undelete": Scenario(_undelete),
    "approve": Scenario(_approve),
    "reject": Scenario(_reject),
    "restore": Scenario(_restore),
    "resend": Scenario(_resend),
    "flush": Scenario(_flush),
    "verify --repair": Scenario(_repair),
}
#: Their removals wait for a decision.
WAITING: Final = tuple(SCENARIOS[name] for name in ("approve", "reject", "restore"))
