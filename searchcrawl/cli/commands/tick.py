"""Start what is due: to be run each minute, by cron or a timer."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.following import find_tick_events, follow_tick
from searchcrawl.cli.output import print_line, print_note, print_object
from searchcrawl.exceptions import Exit
from searchcrawl.scheduling.ticking import Ticked, Ticking
from searchcrawl.store.opening import use_store

#: So long a tick waits for a store that others write to.
STORE_PATIENCE_SECONDS: Final = 5.0
#: What is said of sources, by the key of the answer.
_TEXTS: Final[Mapping[str, str]] = {
    "started": "started",
    "overrun": "is due, and its run before has not ended: this moment is passed over",
    "skipped": 'was due while nothing could start it: passed over (misfire = "skip")',
}


class Command(BaseCommand):
    example = "searchcrawl tick"
    description = (
        "Starts what the schedules of searchcrawl.toml say is due, as processes that go on by themselves, and what died in "
        "the middle of its run. Several at once start nothing twice. Prints nothing where there was nothing to do. "
        "Exit code 7 where a crawl could not be started; status says why."
    )

    def execute(self, args: list[str], opts: argparse.Namespace) -> int:
        project = self.load_project()
        with use_store(project, patience_seconds=STORE_PATIENCE_SECONDS) as database:
            done = Ticking(project, database).tick()
            if opts.json:
                print_object(describe_tick(done))
            else:
                show_tick(done)
            follow_tick(project, database, find_tick_events(done))
        if done.error is not None:
            raise done.error
        return Exit.STORE_FAILED if done.missed_starts else Exit.DONE


def describe_tick(done: Ticked) -> dict[str, Any]:
    """What ``--json`` prints of a tick."""
    names = ("started", "waiting", "running", "overrun", "skipped")
    errors = [{"source": name, "error": text} for name, text in done.failed.items()]
    return {**{name: getattr(done, name) for name in names}, "failed": errors}


def show_tick(done: Ticked, *, at: str = "") -> None:
    """Prints a line for each source with which something happened; ``at`` is what they begin with."""
    for key, text in _TEXTS.items():
        for name in getattr(done, key):
            print_line(f"{at}{name}: {text}")
    for name, text in done.failed.items():
        print_note(f"{at}{name}: {text}")
