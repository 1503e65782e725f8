"""Show on this machine that a killed crawl ends like an undisturbed one."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from searchcrawl.cli.command import BaseCommand, Option, UsageError, whole_number
from searchcrawl.cli.leaving import handling
from searchcrawl.cli.output import print_line, print_object, print_table, progress_bar
from searchcrawl.exceptions import Exit

_KILLS: Final = 10
_SEEDS: Final = 1_000_000
#: Differences of a crawl that are shown; ``--json`` has all.
_SHOWN: Final = 10
_COLUMNS: Final = ("round", "crawl", "killed at", "URLs", "documents", "in hand", "asked again", "result")


class Command(BaseCommand):
    requires_project = False
    shown_arguments = "--kill9"
    example = "searchcrawl selftest --kill9 --kills 30"
    description = (
        "Crawls a site of its own on 127.0.0.1 into a temporary project, kills the crawl with SIGKILL at random "
        "failpoints, or some seconds after its first request, has it go on, and compares table, index, cache, "
        "counters and requests with a crawl that nobody disturbed. No project is needed, and none is touched. Ends "
        "with 0 where all is equal, with 1 where anything differs; then the folder is kept."
    )
    options = (
        Option("--kill9", "kill with SIGKILL; there is no other test yet"),
        Option("--kills N", f"kill so many processes (default {_KILLS})", kind=whole_number, default=_KILLS),
        Option("--seed N", "choose the same kills as an earlier call", kind=whole_number),
    )

    def check_use(self, args: list[str], opts: argparse.Namespace) -> None:
        super().check_use(args, opts)
        if not opts.kill9:
            raise UsageError("missing option: searchcrawl selftest --kill9")
        if opts.kills < 1:
            raise UsageError(f"--kills: must be at least 1 (got {opts.kills})")

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        # Each loads much.
        from searchcrawl.selftest.kill_rounds import KillRounds, describe  # noqa: PLC0415
        from searchcrawl.selftest.site import BuiltInSite  # noqa: PLC0415

        seed = random.randrange(_SEEDS) if opts.seed is None else opts.seed  # noqa: S311  # no secret
        folder, begun, keep = Path(tempfile.mkdtemp(prefix="searchcrawl-selftest-")), time.monotonic(), False
        try:
            with handling({signal.SIGTERM: _leave}), BuiltInSite() as site, progress_bar("killing crawls") as show:
                rounds = KillRounds(folder=folder, site=site, seed=seed)
                if show is not None:
                    rounds.tell = lambda kills: show(kills, opts.kills)
                rounds.run(opts.kills)
            keep = not rounds.is_equal
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
        found = describe(rounds, seconds=time.monotonic() - begun, folder=folder if keep else None)
        if opts.json:
            print_object(found)
        else:
            _show(found, opts.kills)
        return Exit.DONE if found["ok"] else Exit.DIFFERENT


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the command like Ctrl-C: what it started is ended, and its folder removed."""
    sys.exit(Exit.ENDED_EARLY)


def _show(found: Mapping[str, Any], wanted: int) -> None:
    rows = [
        (
            crawl["round"],
            crawl["kind"],
            ", ".join(crawl["killed_at"]) or "never",
            crawl["urls"],
            crawl["documents"],
            crawl["in_hand"],
            crawl["asked_again"],
            "differs" if crawl["differences"] else "equal",
        )
        for crawl in found["crawls"]
    ]
    title = f"{found['kills']} processes killed in {found['seconds']} s, seed {found['seed']}"
    print_table(_COLUMNS, rows, title=title)
    for crawl in found["crawls"]:
        for line in crawl["differences"][:_SHOWN]:
            print_line(f"round {crawl['round']}, {crawl['kind']}: {line}")
        if (more := len(crawl["differences"]) - _SHOWN) > 0:
            print_line(f"round {crawl['round']}, {crawl['kind']}: and {more} more (--json shows all)")
    if found["ok"]:
        print_line(
            "Equal: after each kill the crawl went on, and table, index, cache and counters ended as if undisturbed."
        )
        return
    print_line(f"Different: this must not be. The projects are kept in {found['folder']}")
    print_line(f"Again: searchcrawl selftest --kill9 --kills {wanted} --seed {found['seed']}")
