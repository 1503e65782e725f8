"""List the URLs of a source: state, code, the rule that decided."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.cli.command import BaseCommand, Option, UsageError, utf8_text
from searchcrawl.cli.output import print_line, print_objects, while_read
from searchcrawl.codes import ROBOTS_UNAVAILABLE, is_code
from searchcrawl.queries.urls import list_urls
from searchcrawl.rules.decision import describe_unavailable
from searchcrawl.store.opening import use_store
from searchcrawl.store.urls.url_state import UrlState

_CODE_DIGITS: Final = 4
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\[\]*]+)(:[0-9]{1,5})?")


def _read_code(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _CODE_DIGITS):
        raise argparse.ArgumentTypeError(f"must be one code, such as 404 or 952 (got {text!r})")
    if not is_code(int(text)):
        raise argparse.ArgumentTypeError(f"there is no such code (got {text}): docs/reference/codes.md has all")
    return int(text)


def _read_host(text: str) -> str:
    host = utf8_text(text)
    if not _HOST.fullmatch(host):
        raise argparse.ArgumentTypeError(f"must be a host, with a port or without one (got {host!r})")
    return host


class Command(BaseCommand):
    shown_arguments = "NAME"
    example = "searchcrawl urls intranet --state failed --since 2030-01-31"
    options = (
        Option("--state STATE", ", ".join(UrlState), choices=[state.value for state in UrlState]),
        Option("--code N", "an HTTP status or a code of searchcrawl", kind=_read_code),
        Option("--rule RULE", "the rule that decided, its key, or both with a colon between", kind=utf8_text),
        Option("--host HOST[:PORT]", "a host, on any port where none is named", kind=_read_host),
        Option("--since DATE", "visited, or first seen, since an ISO date or date-time (UTC by default)"),
    )

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        opts.since_ms = None if opts.since is None else _moment_ms(opts.since)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project, source = self.load_source(args[0])
        state = None if opts.state is None else UrlState(opts.state)
        wanted = {"code": opts.code, "rule": opts.rule, "host": opts.host, "since_ms": opts.since_ms}
        with use_store(project) as database:
            rows = list_urls(database, source, state=state, **wanted)
            if opts.json:
                print_objects(rows)
            else:
                _show(rows)


def _moment_ms(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        return clock.to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise UsageError(f"--since: must be an ISO date or date-time (got {text!r})") from None


def _show(rows: Iterable[Mapping[str, Any]]) -> None:
    """Prints a line for each URL: a table would have to hold all of them to know its widths."""
    for row in while_read(rows):
        print_line(url_line(row))


def url_line(row: Mapping[str, Any]) -> str:
    """A row of the URL table on one line: state, code, URL, and why."""
    why = row["rule"] or row["error"] or row["duplicate_of"] or ""
    if why == ROBOTS_UNAVAILABLE:
        why = describe_unavailable(row["error"])
    kept = " (in the index)" if row["in_index"] and row["state"] != UrlState.INDEXED else ""
    return f"{row['state']:<9} {row['code']:>4}  {row['url']}  {why}{kept}".rstrip()
