"""What follows a run or a tick: metrics for a scraper, and the events that people are told of (H2, J1)."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from searchcrawl.cli.output import print_error
from searchcrawl.comparison.look import FINDINGS
from searchcrawl.exceptions import ConfigurationError, Exit, StoreError, UnknownSource, exit_of_failure
from searchcrawl.queries.status import (
    INDEX_DIFFERS,
    describe_overdue,
    describe_refused_source,
    describe_status,
    describe_unstarted,
)
from searchcrawl.run import Run
from searchcrawl.sources.loading import load_source
from searchcrawl.sources.project import EVENTS, Event, Project
from searchcrawl.store.engine.database import Database

if TYPE_CHECKING:
    # A crawl does without what starts crawls.
    from searchcrawl.scheduling.ticking import Ticked

logger = logging.getLogger(__name__)

#: What ended badly, and not by a limit, a signal or an index that is away.
_FAILED: Final = frozenset({Exit.STORE_FAILED, Exit.NO_START, Exit.DIFFERENT})
#: What a tick found of a source: the events, and those that it could judge.
Found = tuple[dict[Event, str], tuple[Event, ...]]


def follow_run(run: Run, status: Mapping[str, Any] | None) -> None:
    """Writes the metrics of the source, and tells of events; ``status`` is None where the store cannot be read."""
    if status is not None:
        note_metrics(run.project, status)
    if run.project.notify.in_use:
        from searchcrawl.operations.notifying import notify  # noqa: PLC0415  # it loads an HTTP client

        judged = EVENTS if status is not None else ("failed",)
        notify(run.project, run.source.name, find_run_events(run, status), judged=judged)


def note_metrics(project: Project, status: Mapping[str, Any]) -> None:
    """Writes the metrics of a source; one that cannot be written is logged."""
    # Its library is needed once, at the end.
    from searchcrawl.queries.metrics import write_metrics  # noqa: PLC0415

    try:
        write_metrics(project.metrics_file(status["source"]), status)
    except OSError as error:
        logger.warning("the metrics cannot be written: %s", error)


def find_run_events(run: Run, status: Mapping[str, Any] | None) -> dict[Event, str]:
    """What people have to see to after a run, with a sentence each."""
    name, found = run.source.name, dict[Event, str]()
    warnings = {} if status is None else {each["code"]: each["message"] for each in status["warnings"]}
    failure = run.shutdown.failure
    code = run.exit_code if failure is None else exit_of_failure(failure)
    if code in _FAILED:
        reason = failure or warnings.get("no_start") or warnings.get("login") or "its log says why"
        found["failed"] = f"run {run.id} of {name} failed (exit {int(code or 0)}): {reason}"
    if run.delivery_failure is not None:
        found["unreachable"] = f"documents of {name} wait for the index: {run.delivery_failure}"
    if status is not None and status["quarantined"]:
        found["quarantine"] = f"{name}: {warnings.get('quarantine', 'deletions wait for approval')}"
    # One that was lost altogether differs, too.
    for warning in (INDEX_DIFFERS, *FINDINGS):
        if warning in warnings:
            found["verify"] = f"{name}: {warnings[warning]}"
    return found


def find_tick_events(done: Ticked) -> dict[str, Found]:
    """What people have to see to after a tick, with a sentence each, by source."""
    found: dict[str, Found] = {}
    for name, reason in done.unstarted.items():
        events: dict[Event, str] = {}
        if reason:
            events["not_started"] = f"{name}: {describe_unstarted(reason)}"
        if name in done.overdue:
            events["overdue"] = f"{name}: {describe_overdue(done.overdue[name])}"
        found[name] = events, ("overdue",) if reason is None else ("overdue", "not_started")
    return found


def follow_tick(project: Project, database: Database, found: Mapping[str, Found]) -> None:
    """Writes the metrics of sources with events, which no run writes, and tells of the events."""
    for name, (events, judged) in found.items():
        if events:
            _write_metrics(project, database, name)
        if project.notify.in_use:
            from searchcrawl.operations.notifying import notify  # noqa: PLC0415  # it loads an HTTP client

            notify(project, name, events, judged=judged, by="tick")


def _write_metrics(project: Project, database: Database, name: str) -> None:
    try:
        try:
            source = load_source(project, name)
        except ConfigurationError as error:
            status = describe_refused_source(project, name, error.errors, database)
        else:
            status = describe_status(project, source, database)
        note_metrics(project, status)
    except UnknownSource:
        # It was deleted, and its schedule still names it.
        return
    except StoreError as error:
        print_error(error)


class TickFollower:
    """Follows the ticks of a service, in a thread of its own: who is told may take its time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[Iterable[Event], Iterable[Event]]] = {}
        self._waiting: queue.SimpleQueue[tuple[Project, dict[str, Found]]] = queue.SimpleQueue()
        threading.Thread(target=self._follow, name="events", daemon=True).start()

    def note(self, project: Project, done: Ticked) -> None:
        """Takes what a tick found; only what is other than before is followed."""
        found = find_tick_events(done)
        seen = {name: (tuple(events), judged) for name, (events, judged) in found.items()}
        changed = {name: found[name] for name in found if self._known.get(name) != seen[name]}
        self._known = {**seen}
        if changed:
            self._waiting.put((project, changed))

    def _follow(self) -> None:
        while True:
            project, found = self._waiting.get()
            follow_tick(project, self._database, found)
