"""One project from its first crawl on: its runs, and what must hold after each of them (``test_whole_lives``)."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Collection, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from hypothesis.stateful import RuleBasedStateMachine

from tests.acceptance.support_life_receivers import LifeReceivers
from tests.acceptance.support_project import Ended, new_project
from tests.crawl_forks import CLOCK, COMMANDS, Forks, Running, started
from tests.final_state import find_wrong_counters
from tests.life_changes import CLOCK as HOURS
from tests.life_changes import Change, Changes
from tests.life_memory import ALL, Memory
from tests.site.client import SiteProcess
from tests.site.expected import short
from tests.stored_rows import query, query_columns
from tests.whole_lives import DAY, EDITS, FREE, HOSTS, ROOT, Publisher, at, first_town

#: Limits that a small site reaches.
LIMIT: Final = 3
#: How a run may end: all done, a limit or signal, no start page, removals that wait.
ORDERLY: Final = (0, 3, 8, 9)
#: Codes of a row that speak against its document, and those by which another page has it.
EVIDENCE: Final = frozenset({404, 410, 951, 952, 953, 954, 955, 1004})
COPY: Final = frozenset({909, 956, 964})
#: States of a document.
PRESENT: Final = 3
REMOVING: Final = 5
QUARANTINED: Final = 6
RECORD_LOST: Final = 7


class Life(RuleBasedStateMachine):
    """``town`` is what the site and the source file say now."""

    site: ClassVar[SiteProcess]

    def __init__(self) -> None:
        super().__init__()
        # What is printed is shown where a life fails; runs that are cut off never go the same way twice.
        print("a life")
        self.folder = Path(tempfile.mkdtemp(prefix="life-"))
        self.publisher = Publisher(self.site)
        self.town = first_town()
        self.changes = Changes(self.town)
        self.memory = Memory()
        self.clock = 0
        self.project = new_project(self.folder / "project", self.site)
        self.receivers = LifeReceivers(self.project)
        self.present: set[str] = set()
        #: in the index since a run that ended of itself: what leaves of these counts
        self.established: set[str] = set()
        self.removed: list[tuple[int, str]] = []
        #: pages against which something has spoken since they were last found well
        self.doubtful: set[str] = set()
        #: removals that a killed process had begun
        self.begun: set[str] = set()
        #: kept by an operator, in spite of what the last runs saw
        self.rejected: set[str] = set()
        #: kept by an operator since they were last found well, with what runs depended on when they were decided about
        self.kept: dict[str, Hashable] = {}
        self.was_killed = False
        #: the next run goes on with one that was cut off: it asks for no page twice
        self.goes_on = False
        #: all that the last completed run depended on; None where another one has begun since
        self.seen: Hashable = None
        #: store or index are older than the other: what the store does not know of may stay until a run has ended
        self.is_older = False
        #: an older index was put back, and no command was told so
        self.is_torn = False
        #: the index is away
        self.is_away = False
        #: rows that are not visited again, of which we know that ``explain`` says why
        self.explained: set[tuple[Any, ...]] = set()
        self.configure()

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def change(self, events: Collection[Change]) -> None:
        """What happens before a run."""
        for event in events:
            print(*event)
            self.clock += 3600 * HOURS.get(event.kind, 0)
            self.changes.make(event)
            self.doubt()
        self.configure()

    def configure(self) -> None:
        """Writes the source file."""
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

    # Runs.

    def begin(self) -> int:
        """Publishes the site for a run; the last completed run before it."""
        print("a run begins, clock", self.clock, "" if self.town.up else "while the site is down")
        self.publisher.publish(self.town)
        completed = self._last_completed()
        self.memory.begin(self.town, completed)
        self.doubt()
        state = self.town.describe()
        self.seen = self.seen if self.seen == state else None
        self.kept = {url: None if kept != state else kept for url, kept in self.kept.items()}
        return completed

    def run(self, *options: str) -> None:
        """A run that is left alone."""
        self.begin()
        ended = self.project.crawl(*options, **self.variables())
        assert ended.exit_code in ORDERLY, ended.errors
        self.was_killed = False
        assert find_wrong_counters(self.project.folder) == []
        is_finished = ended.status["run"]["end_reason"] == "finished"
        self._observe_run(ended, is_whole=is_finished and not self.goes_on)
        self.goes_on = not is_finished

    def _observe_run(self, ended: Ended, *, is_whole: bool) -> None:
        rows, before = self.project.rows(), self.present
        visited = self._visited(rows)
        if is_whole:
            self.memory.complete(self.town, visited, before | {*self.project.indexed()})
            self.seen = self.town.describe()
        self.observe(completed=ended.status["run"]["end_reason"] == "finished")
        verified = self.command("verify", "demo")
        assert verified.returncode == 0 or self.is_older, verified.stdout
        if not (self.is_older or self.is_torn):
            self.receivers.check()
        if is_whole and not self.is_torn:
            self._check_completed(visited)

    def run_without_index(self) -> None:
        """A run that is left alone, while the index cannot be reached."""
        self.begin()
        self.is_away = True
        with self.receivers.without_index():
            ended = self.project.crawl("-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=0.1", **self.variables())
        print("without the index:", ended.exit_code)
        assert ended.exit_code in (6, *ORDERLY), ended.errors
        assert find_wrong_counters(self.project.folder) == []
        is_finished = ended.status["run"]["end_reason"] == "finished"
        if is_finished and not self.goes_on:
            visited = self._visited(self.project.rows())
            self.memory.complete(self.town, visited, self.present)
            self.seen = self.town.describe()
        self.observe(completed=is_finished)
        if not (self.is_older or self.is_torn):
            self.receivers.check_each_other()
        self.goes_on = not is_finished
        self.is_away = False

    def run_and_cut_off(self, **variables: str) -> None:
        """A run that a failpoint may kill."""
        before = self.begin()
        self._note_cut_off(before, self.command("crawl", "demo", **variables).returncode)

    @contextmanager
    def run_under_way(self, requests: int) -> Iterator[Running]:
        """A run, once it has made so many requests, or has ended; a signal is to be sent to it."""
        before = self.begin()
        self.site.clear_log()
        with (
            Forks(1) as forks,
            started(forks.start(self.project.folder, "crawl", "demo", **self.variables())) as running,
        ):
            running.until(lambda: len(self.site.log()) >= requests or not Path(f"/proc/{running.pid}").exists())
            yield running
            code = running.wait()
        self._note_cut_off(before, code)

    def _note_cut_off(self, before: int, code: int) -> None:
        print("cut off with", code)
        assert code in (-signal.SIGKILL, *ORDERLY)
        # A run that was struck while it began may go on with another horizon: only the next one counts anew.
        assert find_wrong_counters(self.project.folder) == []
        self.was_killed = self.was_killed or code < 0
        self.goes_on = True
        # One that was killed may have been at its end.
        self.observe(completed=code < 0 or self._last_completed() != before)

    def _last_completed(self) -> int:
        ((number,),) = query(self.project.folder, "SELECT max(id) FROM runs WHERE end_reason = 'finished'") or [(0,)]
        return number or 0

    def command(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command, with the clock as it is."""
        return COMMANDS.run(self.project.folder, *words, **self.variables(), **variables)

    def answer(self, *words: str, codes: Collection[int] = (0,)) -> dict[str, Any] | None:
        """What a command answers; None where the index is newer than the store, so that it does nothing."""
        done = self.command(*words, "--json")
        print(*words, "->", done.returncode, done.stdout.strip())
        if done.returncode == 6 and self.is_older:
            return None
        assert done.returncode in codes, (words, done.returncode, done.stderr)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def variables(self) -> dict[str, str]:
        """What commands need to know."""
        return {CLOCK: str(self.clock)}

    # What must hold.

    def doubt(self) -> None:
        """Notes what speaks against pages now."""
        for url in ALL:
            if self.town.needs_confirmation and self.town.may_be_gone(url) and not self.memory.may_be_confirmed(url):
                continue
            if self.town.may_remove(url):
                self.doubtful.add(url)

    def observe(self, *, completed: bool = False, approved: Collection[str] = ()) -> None:
        """Compares the index with how it was before: what left may leave, and not too much of it."""
        listed, rows = self.project.indexed(), self.project.rows()
        now, before, self.present = {*listed}, self.present, {*listed}
        left = before - now
        print("left:", *sorted(left), "| new:", *sorted(now - before))
        assert len(listed) == len(now), "a URL is in the index twice"
        begun = {url for url, row in rows.items() if row["document_state"] == REMOVING}
        state = self.town.describe()
        new = (left | (begun & now)) - {*approved} - self.begun
        for url in new:
            assert self._may_leave(url, rows[url], completed=completed), (url, rows[url])
            assert self.kept.get(url) != state or self._has_other_reason(url), ("kept", url, rows[url])
        self.begun = begun
        # Without the index removals count once they are decided.
        counted = new & self.established
        self.removed += [(self.clock, url) for url in counted]
        lately = [url for moment, url in self.removed if abs(self.clock - moment) < DAY]
        limit = FREE if "lifecycle.max_delete_documents" in self.town.edits else LIMIT
        assert not counted or len(lately) <= limit, f"left within 24 hours: {lately}"
        self.established -= left

    def _may_leave(self, url: str, row: dict[str, Any], *, completed: bool) -> bool:
        evidence = row["evidence"] or ""
        # A page that fails now keeps the text that it had, and another one may have that as well.
        if row["copy_of"] is not None and (row["code"] in COPY or evidence in {str(code) for code in COPY}):
            survivor = short(row["copy_of"])
            # The other page may have been read while it had this text, and not since.
            text = self.town.pages[url].text if url in self.town.pages else None
            return (url in self.doubtful or text in self.changes.shared) and (self.is_away or survivor in self.present)
        own = url in self.doubtful and (self.was_killed or row["code"] in EVIDENCE)
        if not completed:
            return own
        orphan = self.town.orphans == "delete" and url not in self._named()
        hidden = self.town.hides and self.memory.may_be_hidden(url)
        if self.was_killed:
            return own or orphan or hidden
        return orphan if evidence == "orphan" else hidden if evidence.startswith("failed in") else own

    def _has_other_reason(self, url: str) -> bool:
        """Whether runs that find the same may have another reason now: they are more, or pages that named it left."""
        hidden = self.town.hides and self.memory.may_be_hidden(url)
        confirmed = self.town.needs_confirmation and self.town.may_be_gone(url)
        return hidden or confirmed or (self.town.orphans == "delete" and url not in self._named())

    def _named(self) -> set[str]:
        """What pages name whose links count for sure."""
        return self.memory.named(self.present | {url for url in self.town.reachable() if self.town.is_followed(url)})

    def _visited(self, rows: Collection[str]) -> set[str]:
        """Pages that a whole run visits, for sure."""
        reachable = self.town.reachable()
        if "scope.depth" in self.town.edits or self.town.orphans != "check":
            return reachable
        return (reachable | {*rows}) & {*ALL}

    def _check_completed(self, visited: Collection[str]) -> None:
        """After a run that ended of itself: what is well is found, what is not leaves or waits."""
        rows = self.project.rows()
        well = {url for url in visited if self.town.is_indexable(url)}
        missing = [url for url in sorted(well) if not self._is_represented(url)]
        assert not missing, [(url, rows.get(url)) for url in missing]
        # A page that fails, or is not asked for, says nothing new to what was rejected.
        self.rejected -= well
        self.kept = {url: kept for url, kept in self.kept.items() if url not in well or url not in self._named()}
        waiting = {url for url, row in rows.items() if row["document_state"] == QUARANTINED}
        stay = [url for url in (self.present & rows.keys()) - waiting if self._must_leave(url, rows[url], visited)]
        assert not stay or self.is_older, [(url, rows[url]) for url in stay]
        self.is_older = False
        self.memory.note_well(well)
        self.doubtful -= well
        self.doubt()
        self.established |= self.present
        self._check_due()

    def _must_leave(self, url: str, row: dict[str, Any], visited: Collection[str]) -> bool:
        """Whether a document of the index leaves or waits, after a whole run."""
        town, memory = self.town, self.memory
        if url in visited or town.is_excluded(url):
            is_enough = not (town.needs_confirmation and town.is_gone(url)) or memory.must_be_confirmed(url)
            if town.removes(url) and is_enough and url not in self.rejected:
                return True
        if url in self.kept or row["copy_of"] is not None:
            return False
        is_orphan = town.orphans == "delete" and url not in memory.may_be_named()
        return is_orphan or (town.hides and memory.must_be_hidden(url))

    def _is_represented(self, url: str) -> bool:
        page = self.town.pages[url]
        found = self.project.found(f'"{page.phrase}"')
        if page.canonical is None and page.text not in self.changes.shared:
            return url in found
        return bool(found) or any(other in self.present for other in self.town.canonicals(url))

    def _check_due(self) -> None:
        """Each row is visited again, or ``explain`` says why not."""
        resting = "SELECT url, code, rule FROM urls WHERE fetch_state = 2 AND due_ms IS NULL"
        for row in query_columns(self.project.folder, resting):
            if (case := (*row.values(),)) in self.explained:
                continue
            self.explained.add(case)
            explained = self.command("explain", row["url"], "--json")
            assert explained.returncode == 0, explained.stderr
            assert json.loads(explained.stdout)["decided_by"]["rule"], explained.stdout
