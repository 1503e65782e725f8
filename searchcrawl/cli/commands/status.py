"""Show the state of a source, or of all: runs, counts, what waits."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from searchcrawl.cli.command import BaseCommand, Option, UsageError
from searchcrawl.cli.output import (
    is_on_terminal,
    print_line,
    print_object,
    print_table,
    print_text,
    print_warnings,
    to_minute,
)
from searchcrawl.comparison.look import FINDINGS, look_at_index
from searchcrawl.durable import write_whole
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.queries.status import (
    describe_gone_source,
    describe_refused_source,
    describe_status,
    find_refused_sources,
    list_gone_sources,
)
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import load_sources
from searchcrawl.sources.project import Project
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

#: Hosts whose refused links are shown; ``--json`` has all that were counted.
_MOST_REFUSED: Final = 10


class Command(BaseCommand):
    shown_arguments = "[NAME]"
    example = "searchcrawl status intranet"
    options = (Option("--prometheus", "print metrics for Prometheus"),)

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        if opts.prometheus and opts.json:
            raise UsageError("--prometheus goes without --json")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project = self.load_project()
        with use_store(project) as database, look_at_index(project) as look:
            gone = [each for each in list_gone_sources(project, database) if not args or each.name == args[0]]
            sources, refused = self._load(project, args[0] if args else None, is_gone=bool(args and gone))
            found = [describe_status(project, each, database, index=look) for each in sources]
            found += [describe_gone_source(project, each, database) for each in gone]
            found += [describe_refused_source(project, *each, database) for each in refused.items()]
        if opts.prometheus:
            # Its library is needed here alone.
            from searchcrawl.queries.metrics import render_metrics  # noqa: PLC0415

            print_text(render_metrics(found))
        elif opts.json:
            print_object(found[0] if args else {"sources": found})
        elif args:
            _show_one(found[0])
        else:
            _show_all(found)

    def _load(
        self, project: Project, name: str | None, *, is_gone: bool
    ) -> tuple[Iterable[Source], Mapping[str, list[ConfigurationError]]]:
        """The sources that are asked for, and the errors of those whose file is refused."""
        if name is not None:
            return [] if is_gone else self.load_sources(project, name), {}
        sources, errors = load_sources(project)
        refused = find_refused_sources(project, sources, errors)
        shown = [error for of_source in refused.values() for error in of_source]
        print_warnings([error for error in errors if error not in shown])
        return sources.values(), refused


def _show_one(status: Mapping[str, Any]) -> None:
    """Prints state, run, counts and warnings of one source."""
    run = status["run"]
    lines = [("state", status["state"])]
    if run is not None:
        lines += [
            ("run", f"{run['id']} ({run['kind']})"),
            ("started", run["started"]),
            ("ended", f"{run['ended']} ({run['end_reason']})" if run["ended"] else "not yet"),
        ]
    if hosts := status.get("hosts"):
        lines.append(("hosts in hand", f"{hosts['in_hand']} ({hosts['pausing']} of them asked for a pause)"))
        lines.append(("hosts that another process asks", str(hosts["waiting"])))
    if status["next_run"]:
        lines.append(("next run", status["next_run"]))
    lines += [
        ("log", status["log"] or "none"),
        ("documents in the index", count_documents(status)),
        ("waiting for the index", str(status["waiting"])),
        ("deletions in quarantine", str(status["quarantined"])),
        ("force_recrawl", status["force_recrawl"] or "no"),
    ]
    print_table((status["source"], ""), lines)
    _show_error(status)
    if run is not None:
        print_table(("count of the run", ""), list_counts(status) or [("nothing was fetched", None)])
    _show_refused_links(status["refused_links"])
    if receivers := status.get("receivers"):
        columns = ("receiver", "state", "waiting", "refused", "lost")
        print_table(columns, [tuple(each[name] for name in columns) for each in receivers])
    _show_warnings(status)


def _show_error(status: Mapping[str, Any]) -> None:
    """Says why the last try to start a source by itself failed."""
    if status["error"] and all(warning["code"] != "not_started" for warning in status["warnings"]):
        print_line(f"{status['source']}: its last start failed: {status['error']}")


def _show_refused_links(refused: Sequence[Mapping[str, Any]]) -> None:
    """Prints where the most links lead that were refused without a row."""
    if not refused:
        return
    shown = sorted(refused, key=lambda row: -row["count"])[:_MOST_REFUSED]
    rows = [(row["host"] or "all others", row["rule"] or "", row["count"]) for row in shown]
    if len(refused) > len(shown):
        rows.append(("and more", "", sum(row["count"] for row in refused) - sum(row["count"] for row in shown)))
    print_table(("links refused without a row", "rule", "links"), rows)


def _show_all(found: list[dict[str, Any]]) -> None:
    """Prints a line for each source, at most 80 columns wide, and then what is unusual."""
    if not found:
        print_line("no sources: put one into sources/NAME.toml")
        return
    columns = ["source", "state", "last run", "to fetch", "documents", "waiting"]
    rows = [
        [
            status["source"],
            status["state"],
            None if status["run"] is None else to_minute(status["run"]["ended"] or status["run"]["started"]),
            status["counts"]["to_fetch"],
            count_documents(status, doubt="?"),
            status["waiting"],
        ]
        for status in found
    ]
    if any(status["next_run"] for status in found):
        columns.insert(3, "next run")
        for row, status in zip(rows, found, strict=True):
            row.insert(3, to_minute(status["next_run"]) if status["next_run"] else None)
    print_table(columns, rows)
    for status in found:
        if status["force_recrawl"]:
            print_line(f"{status['source']}: the next run visits pages without validators: {status['force_recrawl']}")
        _show_error(status)
        _show_warnings(status)


def _show_warnings(status: Mapping[str, Any]) -> None:
    for warning in status["warnings"]:
        print_line(f"{status['source']}: {warning['message']}")


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
