"""Compare index and URL table, or mend what differs (--repair); 1 while a difference stands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from searchcrawl.cli.command import BaseCommand, Option, UsageError
from searchcrawl.cli.output import print_error, print_line, print_lists, print_note
from searchcrawl.comparison.differences import KINDS, Verified, list_crawled_sources, verify
from searchcrawl.exceptions import Exit, exit_of
from searchcrawl.extensions.run_log import install_run_log
from searchcrawl.index.opening import use_index
from searchcrawl.index.receiver import SearchIndex
from searchcrawl.operations.repairing import Repair
from searchcrawl.queries.status import find_known_name
from searchcrawl.sources.loading import list_source_names
from searchcrawl.sources.project import Project
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted


class Command(BaseCommand):
    uses_settings = True
    arguments = (0, 1)
    shown_arguments = "[NAME | --all-sources]"
    example = "searchcrawl verify intranet --repair"
    description = (
        "Names what is missing in the index, extra, stale, or of a source that the project does not have (foreign). "
        "--repair sends it again from the cache or removes it, within the limits on deleting; foreign documents are "
        "removed only where their source is named, or with --all-sources."
    )
    options = (
        Option("--all-sources", "all sources; repair those without a file, too"),
        Option("--repair", "mend the differences"),
        Option("--yes", "remove more than the limits on deleting allow, too (with --repair)"),
    )

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        if args and opts.all_sources:
            raise UsageError("--all-sources goes without a name")
        if opts.yes and not opts.repair:
            raise UsageError("--yes goes with --repair")

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        project = self.load_project()
        with use_store(project) as database, use_index(project) as index:
            only = find_known_name(project, database, args[0]) if args else None
            names = list_source_names(project)
            repair = None
            # One that cannot be compared is refused below.
            if opts.repair and isinstance(index, SearchIndex):
                repair = Repair(
                    project=project,
                    database=database,
                    index=index,
                    sources=names,
                    with_foreign=only is not None or opts.all_sources,
                    beyond_limits=opts.yes,
                    retry_seconds=self.load_settings().getfloat("SEARCHCRAWL_INDEX_PATIENCE_SECONDS"),
                    on_source=partial(install_run_log, project),
                )
            for name in list_crawled_sources(database, names if only is None else [only]):
                print_note(f"warning: {name} is being crawled: what is on its way to or from the index is not compared")
            treat = None if repair is None else repair.treat
            with verify(database, index, names, only=only, treat=treat) as found:
                _show(found, as_json=opts.json)
                _tell(project, names if only is None else [only], found)
                ended = [Exit.DONE if found.ok else Exit.DIFFERENT]
        return max([*ended, *_say(repair)])


def _tell(project: Project, names: Sequence[str], found: Verified) -> None:
    """Has people told of the sources that differ."""
    if not project.notify.in_use:
        return
    from searchcrawl.operations.notifying import notify  # noqa: PLC0415  # it loads an HTTP client

    differing = {} if found.ok else found.count_by_source()
    for name in names:
        documents = counted(differing.get(name, 0), f"document of {name} differs", f"documents of {name} differ")
        message = f"{documents} in the index: searchcrawl verify {name}"
        notify(project, name, {"verify": message} if name in differing else {}, judged=("verify",), by="verify")


def _show(found: Verified, *, as_json: bool) -> None:
    if as_json:
        lists = {kind: found.describe(kind) for kind in KINDS}
        print_lists({"ok": found.ok}, lists, {"repaired": found.repaired})
        return
    for kind in KINDS:
        for entry in found.describe(kind):
            print_line(f"{kind:<8} {entry['url'] or entry['id']}  {entry['why']}")
    counts = ", ".join(f"{kind} {len(found.found[kind])}" for kind in KINDS)
    print_line(f"{counts}; {found.repaired} repaired" if found.repaired else counts)


def _say(repair: Repair | None) -> list[Exit]:
    """Says what was not mended, and why; returns the exit codes of errors."""
    if repair is None:
        return []
    for name, limits in repair.held_back.items():
        print_note(
            f"searchcrawl verify: {limits.candidates} of {counted(limits.documents, 'document', 'documents')} of {name} would "
            "leave the index, more than its limits on deleting allow: none of them was removed; --yes removes them all the same"
        )
    for name, pages in repair.to_visit.items():
        visited = counted(pages, f"page of {name} is", f"pages of {name} are")
        print_note(f"searchcrawl verify: {visited} visited by its next run: searchcrawl crawl {name}")
    for error in repair.errors:
        print_error(error)
    return [exit_of(error) for error in repair.errors]
