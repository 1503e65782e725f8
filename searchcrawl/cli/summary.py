"""The numbers of a source and its last run for people: what is zero is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchcrawl.cli.output import print_line, print_table
from searchcrawl.comparison.look import FINDINGS


def count_documents(status: Mapping[str, Any], *, doubt: str = " by the table, but see below") -> str:
    """How many documents the index has; with ``doubt`` where the index itself says something else."""
    doubtful = any(warning["code"] in FINDINGS for warning in status["warnings"])
    return f"{status['documents']}{doubt if doubtful else ''}"


def list_counts(status: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The counters of the run that are not zero, with their names for people."""
    return [(name.replace("_", " "), value) for name, value in status["counts"].items() if value]


def show_summary(status: Mapping[str, Any], *, warnings: bool = True) -> None:
    """Prints the one table at the end of a run, and the warnings of the source."""
    run = status["run"]
    rows: list[tuple[str, object]] = [*list_counts(status), ("documents in the index", count_documents(status))]
    if status["waiting"]:
        rows.append(("waiting", status["waiting"]))
    if status["quarantined"]:
        rows.append(("deletions in quarantine", status["quarantined"]))
    title = f"{status['source']}: {run['kind']} run {run['id']}, {run['end_reason'] or 'interrupted'}"
    print_table(("", "count"), rows, title=title)
    for warning in status["warnings"] if warnings else ():
        print_line(f"{status['source']}: {warning['message']}")
