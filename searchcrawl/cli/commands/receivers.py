"""Show who gets documents besides the index and how far each has got, or pause one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from searchcrawl.cli.command import BaseCommand, Option, UsageError
from searchcrawl.cli.output import print_line, print_objects, print_table
from searchcrawl.exceptions import Exit, UnknownReceiver
from searchcrawl.operations.stopping import pause
from searchcrawl.queries.receivers import describe_receivers
from searchcrawl.sources.project import FILE
from searchcrawl.store.opening import use_store

_ACTIONS: Final = ("list", "pause", "resume")


class Command(BaseCommand):
    shown_arguments = "list|pause|resume [NAME]"
    example = "searchcrawl receivers pause archive"
    options = (Option("--source S", "of this source alone"),)

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        if args[0] not in _ACTIONS:
            raise UsageError(f"unrecognized argument: {args[0]} (there are {', '.join(_ACTIONS)})")
        if args[0] != "list" and len(args) < 2:
            raise UsageError(f"{args[0]} needs the NAME of a receiver")

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        project = self.load_project()
        action, name = args[0], args[1] if len(args) > 1 else None
        if name is not None and name not in project.receivers:
            known = ", ".join(project.receivers) or "none"
            raise UnknownReceiver(f"no such receiver: {name} (there are {known}: [receivers.NAME] in {FILE})")
        sources = self.load_sources(project, opts.source)
        with use_store(project) as database:
            if action == "list":
                found = [
                    each
                    for source in sources
                    for each in database.read(describe_receivers, project=project, source=source)
                    if name is None or each["receiver"] == name
                ]
                _show(found, as_json=opts.json)
            elif name is not None:
                paused = action == "pause"
                changed = pause(project, sources, database, name, paused=paused)
                _tell(name, changed, paused=paused, as_json=opts.json)
        return Exit.DONE


def _show(found: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_objects(found)
        return
    if not found:
        print_line(f"no receivers: [receivers.NAME] in {FILE} adds one")
        return
    columns = ("receiver", "source", "state", "waiting", "refused", "lost")
    print_table(columns, [tuple(each[name] for name in columns) for each in found])
    for each in found:
        if each["error"]:
            print_line(f"{each['receiver']}, {each['source']}: since {each['since']}: {each['error']}")


def _tell(name: str, changed: Sequence[str], *, paused: bool, as_json: bool) -> None:
    if as_json:
        print_objects({"receiver": name, "source": source, "paused": paused} for source in changed)
        return
    word = "is paused" if paused else "goes on with the next run, or: searchcrawl flush NAME"
    print_line(f"{name}: {word} ({', '.join(changed)})" if changed else f"{name}: nothing to do, it is so already")
