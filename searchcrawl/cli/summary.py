"""The numbers of a source and its last run for people: what is zero is left out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from searchcrawl.cli.output import is_on_terminal, print_line, print_table
from searchcrawl.comparison.look import FINDINGS
from searchcrawl.durable import write_whole
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)


def count_documents(status: Mapping[str, Any], *, doubt: str = " by the table, but see below") -> str:
    """How many documents the index has; with ``doubt`` where the index itself says something else."""
    doubtful = any(warning["code"] in FINDINGS for warning in status["warnings"])
    return f"{status['documents']}{doubt if doubtful else ''}"


def list_counts(status: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The counters of the run that are not zero, with their names for people."""
    return [(name.replace("_", " "), value) for name, value in status["counts"].items() if value]


def show_summary(status: Mapping[str, Any], *, warnings: bool = True, said: Path | None = None) -> None:
    """Prints the one table at the end of a run, and the warnings of the source.

    Elsewhere than on a terminal those in the file ``said`` are left out: a run of each night does not say each night what
    it said before. The file has those of this run then.
    """
    run = status["run"]
    rows: list[tuple[str, object]] = [*list_counts(status), ("documents in the index", count_documents(status))]
    if status["waiting"]:
        rows.append(("waiting", status["waiting"]))
    if status["quarantined"]:
        rows.append(("deletions in quarantine", status["quarantined"]))
    title = f"{status['source']}: {run['kind']} run {run['id']}, {run['end_reason'] or 'interrupted'}"
    print_table(("", "count"), rows, title=title)
    messages = [warning["message"] for warning in status["warnings"]] if warnings else []
    shown = messages if said is None else _leave_out_said(said, messages)
    for message in shown:
        print_line(f"{status['source']}: {message}")
    if len(shown) < len(messages):
        left_out = counted(len(messages) - len(shown), "warning", "warnings")
        print_line(f"{status['source']}: {left_out} as after the run before: searchcrawl status {status['source']}")


def _leave_out_said(file: Path, messages: Sequence[str]) -> list[str]:
    known: Any = []
    try:
        known = orjson.loads(file.read_bytes())
    except FileNotFoundError:
        # Nothing was said yet.
        known = []
    except (OSError, ValueError) as error:
        logger.warning("what was said cannot be read, and is said again: %s", error)
    if known != messages:
        try:
            write_whole(file, orjson.dumps(messages))
        except OSError as error:
            logger.warning("what was said cannot be noted, and is said again: %s", error)
    is_list = isinstance(known, list)
    return [message for message in messages if is_on_terminal() or not (is_list and message in known)]
