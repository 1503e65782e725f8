"""Delete a source: its documents in the index, its cache and its rows in the table."""

from __future__ import annotations

import argparse
import sys

from searchcrawl.cli.command import BaseCommand, Option
from searchcrawl.cli.output import print_answer, print_note
from searchcrawl.exceptions import ConfigurationError, Exit, UnknownSource
from searchcrawl.operations import source_deletion
from searchcrawl.operations.handing_over import hand_over
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import is_source_name, list_source_names, load_source, stand_in_for
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted


class Command(BaseCommand):
    uses_settings = True
    shown_arguments = "NAME"
    example = "searchcrawl delete intranet"
    description = (
        "Takes all documents of a source out of the index, and deletes its cache and its rows in the table. Its file stays, "
        "and its log; with the file, the next crawl begins anew. The name has to be typed once more, or --yes given."
    )
    options = (Option("--yes", "do not ask for the name"),)

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        (name,) = args
        project = self.load_project()
        retry_seconds = self.load_settings().getfloat("SEARCHCRAWL_INDEX_PATIENCE_SECONDS")
        with use_store(project) as database:
            source = _find_source(project, database, name)
            if not (opts.yes or _is_confirmed(name, source_deletion.count_documents(database, name))):
                print_note(f"searchcrawl delete: nothing was deleted: {name} was not typed")
                return Exit.WRONG_USE
            done = source_deletion.delete(project, source, database, retry_seconds=retry_seconds)
            hand_over(project, database, retry_seconds=retry_seconds)
        failed = f", {done['failed']} refused by the index: call again" if done["failed"] else ""
        again = f"; sources/{name}.toml is still there" if name in list_source_names(project) else ""
        documents = counted(done["documents"], "document", "documents")
        line = f"{name}: {done['removed']} of {documents} removed{failed}{again}"
        print_answer(done, [line], as_json=opts.json)
        return Exit.DIFFERENT if done["failed"] else Exit.DONE


def _find_source(project: Project, database: Database, name: str) -> Source:
    """The source of this name, from its file where that is good; raises UnknownSource where nothing is left of it."""
    if not is_source_name(name):
        raise UnknownSource(f"unknown source: {name}")
    try:
        return load_source(project, name)
    except UnknownSource:
        if not source_deletion.is_left(project, database, name):
            raise
    except ConfigurationError as error:
        print_note(f"warning: {error}")
    return stand_in_for(project, name)


def _is_confirmed(name: str, documents: int | None) -> bool:
    count = "all its documents" if documents is None else counted(documents, "document", "documents")
    print_note(f"{name}: {count} would leave the index. Type the name of the source to delete it:")
    return sys.stdin.readline().strip() == name
