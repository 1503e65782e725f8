"""What follows a run: metrics for a scraper, and the events that people are told of (J1)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from searchcrawl.comparison.look import FINDINGS
from searchcrawl.exit_codes import Exit, exit_of_failure
from searchcrawl.queries.status import INDEX_DIFFERS
from searchcrawl.run import Run
from searchcrawl.sources.notify_table import EVENTS, Event
from searchcrawl.sources.project import Project

logger = logging.getLogger(__name__)

#: What ended badly, and not by a limit, a signal or an index that is away.
_FAILED: Final = frozenset({Exit.STORE_FAILED, Exit.NO_START, Exit.DIFFERENT})


def follow_run(run: Run, status: Mapping[str, Any] | None) -> None:
    """Writes the metrics of the source, and tells of events; ``status`` is None where the store cannot be read."""
    if status is not None:
        note_metrics(run.project, status)
    if run.project.notify.in_use:
        from searchcrawl.operations.notifying import notify  # noqa: PLC0415  # it loads an HTTP client

        judged = EVENTS if status is not None else ("failed",)
        notify(run.project, run.source.name, find_events(run, status), judged=judged)


def note_metrics(project: Project, status: Mapping[str, Any]) -> None:
    """Writes the metrics of a source; one that cannot be written is logged."""
    # Its library is needed once, at the end.
    from searchcrawl.queries.metrics import write_metrics  # noqa: PLC0415

    try:
        write_metrics(project.metrics_file(status["source"]), status)
    except OSError as error:
        logger.warning("the metrics cannot be written: %s", error)


def find_events(run: Run, status: Mapping[str, Any] | None) -> dict[Event, str]:
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
