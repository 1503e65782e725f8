"""Compare index and URL table: missing, extra, stale, foreign documents; 1 where they differ."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from searchcrawl.cli.command import Command as BaseCommand
from searchcrawl.cli.commands.sources import explain_unknown
from searchcrawl.cli.output import print_line, print_note, print_object
from searchcrawl.exceptions import UnknownSource
from searchcrawl.exit_codes import Exit
from searchcrawl.index.opening import use_index
from searchcrawl.queries.verify import list_crawled_sources, verify
from searchcrawl.sources.loading import list_source_names, require_source_file
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database

_KINDS: Final = ("missing", "extra", "stale", "foreign")


class Command(BaseCommand):
    requires_project = True
    arguments = (0, 1)
    shown_arguments = "[NAME]"
    example = "searchcrawl verify intranet"

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        project = self.load_project()
        only = _require_source(project, args[0]) if args else None
        with closing(Database(project.database_url, project.root)) as database, use_index(project) as index:
            names = list_source_names(project)
            for name in list_crawled_sources(database, names if only is None else [only]):
                print_note(f"warning: {name} is being crawled: what is on its way to or from the index is not compared")
            found = verify(database, index, names, only=only)
        if opts.json:
            print_object(found)
        else:
            _show(found)
        return Exit.DONE if found["ok"] else Exit.DIFFERENT


def _require_source(project: Project, name: str) -> str:
    try:
        return require_source_file(project, name)
    except UnknownSource as error:
        raise explain_unknown(project, name, error) from error


def _show(found: Mapping[str, Any]) -> None:
    for kind in _KINDS:
        for entry in found[kind]:
            print_line(f"{kind:<8} {entry['url'] or entry['id']}  {entry['why']}")
    print_line(", ".join(f"{kind} {len(found[kind])}" for kind in _KINDS))
