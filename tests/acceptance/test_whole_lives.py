"""Whole lives of small projects: whatever happens, nothing leaves the index by mistake (D4, D8, F2, L3).

Hypothesis makes up what happens. ``SEARCHCRAWL_LIVES`` is how many lives the soak tries, ``SEARCHCRAWL_LIVES_SEED``
the first of their seeds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

import tests.same_examples  # noqa: F401  # the same for everybody
from searchcrawl.failpoints import (
    NAMES,
    OF_FEEDS,
    OF_LARGE_BODIES,
    OF_LISTINGS,
    OF_NAMES,
    OF_PLANS,
    OF_REPAIRS,
    OF_TICKS,
)
from tests import backends
from tests.acceptance.support_life_receivers import KINDS as RECEIVERS
from tests.acceptance.support_whole_life import PRESENT, QUARANTINED, RECORD_LOST, REMOVING, Life
from tests.life_changes import KINDS, Change
from tests.life_memory import Memory
from tests.site.client import SiteProcess
from tests.site.expected import short
from tests.stored_rows import query
from tests.whole_lives import EDITS, URLS

pytestmark = pytest.mark.extended

POINTS: Final = [
    name
    for name in NAMES
    if name
    not in {"tables.mid", *OF_FEEDS, *OF_PLANS, *OF_REPAIRS, *OF_TICKS, *OF_NAMES, *OF_LISTINGS, *OF_LARGE_BODIES}
]

urls = st.sampled_from(URLS)
#: What happens before a run.
events = st.lists(st.builds(Change, st.sampled_from(KINDS), urls, urls), min_size=1, max_size=6)
edits = st.sets(st.sampled_from(sorted(EDITS)), max_size=3)
#: Which of the runs that there are: none is named, the newest one, or the one before it.
picks = st.sampled_from([None, 0, 1])


class WholeLife(Life):
    """What may happen."""

    @initialize(edits=edits)
    def crawl_first(self, edits: set[str]) -> None:
        self.town.edits = edits
        self.crawl([])

    # Runs, and how they end.

    @rule(events=events)
    def crawl(self, events: list[Change]) -> None:
        self.change(events)
        self.run()

    @rule()
    def crawl_again(self) -> None:
        self.run()

    @rule(events=events, visits=st.integers(1, 8))
    def crawl_some(self, events: list[Change], visits: int) -> None:
        self.change(events)
        self.run("-a", f"limit={visits}")

    @rule(events=events)
    def crawl_while_the_site_is_down(self, events: list[Change]) -> None:
        self.change(events)
        self.town.up = False
        self.run()
        self.town.up = True

    @rule(events=events)
    def crawl_without_the_index(self, events: list[Change]) -> None:
        self.change(events)
        self.run_without_index()

    @rule(events=events, point=st.sampled_from(POINTS), number=st.integers(1, 4))
    def crawl_and_be_killed(self, events: list[Change], point: str, number: int) -> None:
        self.change(events)
        self.run_and_cut_off(SEARCHCRAWL_FAILPOINT=f"{point}:{number}")

    @rule(events=events, requests=st.integers(1, 16), how=st.sampled_from([signal.SIGINT, signal.SIGKILL]))
    def crawl_and_be_signalled(self, events: list[Change], requests: int, how: signal.Signals) -> None:
        self.change(events)
        with self.run_under_way(requests) as running:
            running.signal(how)

    @rule(kind=st.sampled_from(RECEIVERS))
    def shake_receivers(self, kind: str) -> None:
        self.receivers.shake(kind)

    # What operators do.

    @rule(action=st.sampled_from(["approve", "reject", "restore"]), pick=picks)
    def decide(self, action: str, pick: int | None) -> None:
        listed = self._list(*(["--rejected"] if action == "restore" else []))
        if not listed:
            self.run()
            return
        runs = sorted({row["run"] for row in listed}, reverse=True)
        only = None if pick is None else runs[min(pick, len(runs) - 1)]
        chosen = {short(row["url"]) for row in listed if only in {None, row["run"]}}
        done = self.answer("quarantine", action, "demo", *([] if only is None else ["--run", str(only)]))
        if done is None:
            return
        if action == "reject":
            self._keep(chosen)
            self.observe()
            return
        self.observe(approved=chosen)
        # What a run held back that goes on was not listed whole.
        assert self.goes_on or not chosen & self.present, chosen & self.present
        self.rejected -= chosen
        self.kept = {url: kept for url, kept in self.kept.items() if url not in chosen}

    def _list(self, *options: str) -> list[dict[str, Any]]:
        done = self.command("quarantine", "list", "demo", *options, "--json")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def _keep(self, urls: set[str]) -> None:
        self.rejected |= urls
        self.kept |= dict.fromkeys(urls, self.seen)

    @rule(pick=st.integers(0, 2))
    def undelete(self, pick: int) -> None:
        runs = query(
            self.project.folder, "SELECT DISTINCT removed_run FROM documents WHERE removed_run > 0 ORDER BY 1 DESC"
        )
        if not runs:
            self.run()
            return
        number, before = runs[min(pick, len(runs) - 1)][0], self.present
        rows = self.project.rows()
        taken = {url for url, row in rows.items() if row["removed_run"] == number}
        back = taken - before
        # Decided while the index was away, which has them still.
        sealed = {url for url in taken & before if rows[url]["document_state"] == REMOVING}
        done = self.answer("undelete", str(number))
        self.observe()
        if done is None:
            self.rejected |= back | sealed
            return
        assert done["failed"] == 0, done
        # A copy comes back as the page that is indexed instead of it.
        rows = self.project.rows()
        missing = {url for url in back - self.present if rows[url]["copy_of"] is None}
        assert len(missing) <= done["to_fetch"], (missing, done)
        # What was seen before may be other evidence than that which removed them.
        self.rejected |= back | sealed
        self.kept |= dict.fromkeys(back | sealed)

    @rule()
    def lose_index(self) -> None:
        if self.is_older:
            return
        print("the index is lost")
        backends.current.lose_index(self.project.folder)
        self.resend()

    def resend(self) -> None:
        """Fills the index again: all of the documents that it should have."""
        wanted, lost = self._wanted(has_record=True), self._wanted(has_record=False)
        done = self.answer("resend", "demo", codes=(0, 1))
        assert done is not None
        assert done["to_fetch"] == 0 or lost or self.is_older, done
        self.present = {*self.project.indexed()}
        assert wanted <= self.present, wanted - self.present
        self.established &= self.present
        # Removals that wait are of documents that the index has.
        assert self.command("verify", "demo").returncode == 0 or lost or self.is_older

    def _wanted(self, *, has_record: bool) -> set[str]:
        """Documents that the index should have, also those that wait for an operator; with a record in the cache or not."""
        held = f"state IN ({PRESENT}, {QUARANTINED}) AND segment IS"
        found = query(
            self.project.folder,
            "SELECT url FROM urls JOIN documents ON documents.url_id = urls.id WHERE "
            + (f"{held} NOT NULL" if has_record else f"state = {RECORD_LOST} OR ({held} NULL)"),
        )
        return {short(url) for (url,) in found}


class LongLife(WholeLife):
    """The same, with stores and indexes that are put back from an earlier copy."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: tuple[Path, Memory, set[str], set[str]] | None = None
        self.copies = 0

    @rule()
    def save(self) -> None:
        if self.saved is None:
            # A database that was put back keeps its name, which is made from the folder.
            self.copies += 1
            copy = backends.current.copy(self.project.folder, self.folder / f"saved{self.copies}")
            self.saved = copy, self.memory.copy(), {*self.doubtful}, {*self.rejected}

    @rule()
    def put_store_back(self) -> None:
        if self.saved is not None:
            _, memory, doubtful, rejected = self.saved
            self._put_back("store")
            self.receivers.doubt()
            self.memory.put_back(memory)
            self.doubtful |= doubtful
            self.rejected |= rejected
            self.kept = dict.fromkeys(self.kept.keys() | rejected)
            self.seen = None
            # It has forgotten what was removed since.
            self.removed = []

    @rule(runs=st.integers(0, 1))
    def put_index_back(self, runs: int) -> None:
        if self.saved is None or self.is_older:
            return
        self._put_back("index")
        self.present = {*self.project.indexed()}
        self.is_torn = True
        for _ in range(runs):
            # It believes what the store says.
            self.run()
        self.is_torn = False
        self.resend()

    def _put_back(self, part: str) -> None:
        assert self.saved is not None
        copy, *_ = self.saved
        print("put back:", part)
        backends.current.put_back(part, copy, self.project.folder)
        self.saved = None
        shutil.rmtree(copy)
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
        Life.site = site
        yield


@pytest.mark.few(1)
@pytest.mark.parametrize("number", range(3))
def test_index_in_a_whole_life_then_nothing_leaves_it_by_mistake(number: int) -> None:
    live(WholeLife, number, 2, phases=(Phase.generate,))


LIVES: Final = int(os.environ.get("SEARCHCRAWL_LIVES", "500"))
SEED: Final = int(os.environ.get("SEARCHCRAWL_LIVES_SEED", "1000"))
AT_ONCE: Final = 20


@pytest.mark.soak
@pytest.mark.pairs
@pytest.mark.parametrize("number", range(-(-LIVES // AT_ONCE)))
def test_index_in_many_whole_lives_then_nothing_leaves_it_by_mistake(number: int) -> None:
    live(LongLife, SEED + number, AT_ONCE, phases=(Phase.generate, Phase.shrink))
