"""Look at all that a run needs before it is needed: a line and a remedy each."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from searchcrawl import settings as shipped
from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.commands.sources import check_files
from searchcrawl.cli.output import print_line, print_object
from searchcrawl.exceptions import ConfigurationError, Exit
from searchcrawl.queries.doctor import Health, HealthCheck, describe_errors, examine, skip_rest
from searchcrawl.sources.loading import find_project, load_sources, read_project
from searchcrawl.sources.stored_modes import apply_umask


class Command(BaseCommand):
    uses_settings = True
    example = "searchcrawl doctor"
    description = (
        "Looks, as a run does, at the configuration files, the contact, folders with their space and locks, the store, the "
        "index and its schema, the names and certificates of the hosts of start URLs, the browser, converters, the clock, the "
        "scrapyds and the command of [notify]. No page is requested; a host with https is shaken hands with. "
        "ok, warning (a run begins), wrong (exit 1), skipped."
    )

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        found: list[HealthCheck] = []
        for check in self._examine():
            found.append(check)
            if not opts.json:
                # Some of them take seconds: each is shown as soon as it is known.
                print_line(_describe(check))
        is_wrong = any(check.state is Health.WRONG for check in found)
        if opts.json:
            print_object({"ok": not is_wrong, "checks": [check.as_json() for check in found]})
        return Exit.DIFFERENT if is_wrong else Exit.DONE

    def _examine(self) -> Iterator[HealthCheck]:
        root = find_project()
        count, errors, doubts = check_files()
        project = None
        try:
            project, _ = read_project(root)
        except ConfigurationError as error:
            yield from describe_errors(count, errors, doubts)
            yield skip_rest(error)
            return
        yield from describe_errors(count, errors, doubts, project)
        if project is None:
            yield skip_rest(errors[0])
            return
        apply_umask(project)
        sources, _ = load_sources(project)
        yield from examine(project, sources, min_free_bytes=self._find_min_free())

    def _find_min_free(self) -> int:
        try:
            megabytes = self.load_settings().getfloat("SEARCHCRAWL_MIN_FREE_MB")
        except ConfigurationError:
            # It is among the errors of the files.
            megabytes = shipped.SEARCHCRAWL_MIN_FREE_MB
        return round(megabytes * (1 << 20))


def _describe(check: HealthCheck) -> str:
    shown = check.as_json()
    remedy = shown["remedy"] if shown["remedy"] and not shown["message"].endswith(shown["remedy"]) else ""
    whose = f"{check.source}: " if check.source else ""
    return f"{check.state:<8} {check.what}: {whose}{shown['message']}{f'; {remedy}' if remedy else ''}"
