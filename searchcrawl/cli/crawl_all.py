"""``crawl --all``: each source in turn, in a process of its own."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Iterator

from searchcrawl.cli.output import flush_output, print_error, print_note
from searchcrawl.exit_codes import Exit, exit_of
from searchcrawl.scheduling.launching import build_command
from searchcrawl.scheduling.service import Signals
from searchcrawl.sources.loading import load_sources
from searchcrawl.sources.project import Project
from searchcrawl.store.opening import use_store
from searchcrawl.store.runs import job_table, run_table

_POLL_SECONDS = 1.0


def crawl_all(project: Project, opts: argparse.Namespace) -> int:
    """Crawls all sources but those that are suspended, by name; the highest of their exit codes.

    A signal ends the one under way, and no other is begun.
    """
    sources, errors = load_sources(project)
    for error in errors:
        print_error(error)
    codes = [int(exit_of(error)) for error in errors]
    signals = Signals()
    with signals.catch():
        for name in sources:
            if signals.count:
                codes.append(Exit.ENDED_EARLY)
                break
            if _is_suspended(project, name):
                print_note(f"searchcrawl: {name} is left out: it is suspended (searchcrawl resume {name})")
            else:
                codes.append(_crawl(project, name, opts, signals))
    return max(codes, default=Exit.DONE)


def _is_suspended(project: Project, name: str) -> bool:
    with use_store(project) as database, database.read_once() as transaction:
        return run_table.find_source(transaction, name) in job_table.find_suspended(transaction)


def _crawl(project: Project, name: str, opts: argparse.Namespace, signals: Signals) -> int:
    flush_output()
    command = [*build_command(name), *_list_options(opts)]
    passed = signals.count
    with subprocess.Popen(command, cwd=project.root) as child:  # noqa: S603  # our own command
        while child.poll() is None:
            signals.wait(_POLL_SECONDS)
            if signals.count > passed:
                passed = signals.count
                # A terminal has sent it to the crawl as well; twice would be the second Ctrl-C.
                if signals.last != signal.SIGINT or not sys.stdin.isatty():
                    child.send_signal(signal.SIGTERM)
    # One that was killed goes on with its next run.
    return child.returncode if child.returncode >= 0 else Exit.ENDED_EARLY


def _list_options(opts: argparse.Namespace) -> Iterator[str]:
    """The options of the command line, for each crawl."""
    for option, values in (("-a", opts.arguments), ("-s", opts.set), ("--set", opts.overrides)):
        for value in values:
            yield from (option, value)
    if opts.loglevel:
        yield from ("-L", opts.loglevel)
    if opts.logfile:
        yield from ("--logfile", opts.logfile)
    if opts.json:
        yield "--json"
