"""What follows a tick: metrics of sources that do not begin, and the events that people are told of (H2, J1)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from searchcrawl.cli.after_run import note_metrics
from searchcrawl.cli.output import print_error
from searchcrawl.exceptions import ConfigurationError, StoreError, UnknownSource
from searchcrawl.queries.gone_sources import describe_refused_source
from searchcrawl.queries.job_status import describe_overdue, describe_unstarted
from searchcrawl.queries.status import describe_status
from searchcrawl.scheduling.ticking import Ticked
from searchcrawl.sources.fingerprint import VERSIONS
from searchcrawl.sources.loading import load_source
from searchcrawl.sources.notify_table import Event
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database

#: What a tick found of a source: the events, and those that it could judge.
Found = tuple[dict[Event, str], tuple[Event, ...]]


def find_events(done: Ticked) -> dict[str, Found]:
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
        note_metrics(project, _describe(project, database, name))
    except UnknownSource:
        # It was deleted, and its schedule still names it.
        return
    except StoreError as error:
        print_error(error)


def _describe(project: Project, database: Database, name: str) -> dict[str, Any]:
    try:
        source = load_source(project, name)
    except ConfigurationError as error:
        return describe_refused_source(project, name, error.errors, database)
    return describe_status(source, database, VERSIONS, preserve=project.cache.preserve, project=project)


class TickFollower:
    """Follows the ticks of a service, in a thread of its own: who is told may take its time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[Iterable[Event], Iterable[Event]]] = {}
        self._waiting: queue.SimpleQueue[tuple[Project, dict[str, Found]]] = queue.SimpleQueue()
        threading.Thread(target=self._follow, name="events", daemon=True).start()

    def note(self, project: Project, done: Ticked) -> None:
        """Takes what a tick found; only what is other than before is followed."""
        found = find_events(done)
        seen = {name: (tuple(events), judged) for name, (events, judged) in found.items()}
        changed = {name: found[name] for name in found if self._known.get(name) != seen[name]}
        self._known = {**seen}
        if changed:
            self._waiting.put((project, changed))

    def _follow(self) -> None:
        while True:
            project, found = self._waiting.get()
            follow_tick(project, self._database, found)
