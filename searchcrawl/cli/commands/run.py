"""Run as a service in the foreground: start what is due, restart what died."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial

from searchcrawl import clock
from searchcrawl.cli.command import BaseCommand
from searchcrawl.cli.commands.tick import STORE_PATIENCE_SECONDS, describe_tick, show_tick
from searchcrawl.cli.following import TickFollower
from searchcrawl.cli.output import error_lines, print_line, print_note, print_object, try_output
from searchcrawl.scheduling.service import Service
from searchcrawl.scheduling.ticking import Ticked
from searchcrawl.sources.project import Project
from searchcrawl.store.opening import use_store
from searchcrawl.wording import counted


class Command(BaseCommand):
    example = "searchcrawl run"
    description = (
        "Does what tick does, every two seconds, until a signal (Ctrl-C, SIGTERM): then its crawls end cleanly, as after "
        "stop, and go on when it runs again. What dies is started again after a pause, which grows. It says that it is up, "
        "what happens, and what it waits for, each line with its time in UTC."
    )

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        project = self.load_project()
        teller = _Teller(as_json=opts.json)

        # A store that is away for longer does not end it either, and no signal waits for the store.
        with use_store(project, patience_seconds=STORE_PATIENCE_SECONDS) as database:
            follower = TickFollower(database)

            def tell(done: Ticked) -> None:
                # Nobody may read it any more: the crawls go on.
                _try(partial(teller.tell, done))
                follower.note(project, done)

            def load_project() -> Project:
                nonlocal project
                project = self.load_project()
                return project

            service = Service(
                load_project,
                database,
                tell=tell,
                warn=lambda error: _try(partial(_warn, error)),
                say_end=lambda: _try(teller.say_end),
            )
            service.run()
        _try(partial(teller.say, "down"))


class _Teller:
    """Prints what a service does, and what it waits for as soon as that is something else."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._waited_for: tuple[Sequence[str], Sequence[str], object] | None = None

    def tell(self, done: Ticked) -> None:
        """Prints what a tick did; the first one says that the service is up."""
        waits_for = (done.waiting, [*done.running, *done.started], done.next_due)
        is_first, is_new = self._waited_for is None, waits_for != self._waited_for
        self._waited_for = waits_for
        happened = bool(done.started or done.overrun or done.skipped or done.failed)
        if self._as_json:
            if is_first or is_new or happened:
                print_object(_describe(done))
            return
        if is_first:
            self.say(f"up: {counted(done.scheduled, 'source has a schedule', 'sources have a schedule')}")
        show_tick(done, at=_find_time())
        if is_new:
            self.say(f"waits for {_name_waited(done)}")

    def say_end(self) -> None:
        """Says that a signal has come."""
        self.say("ends: its crawls go on when it runs again; a second signal ends them at once")

    def say(self, text: str) -> None:
        """Prints a line about the service itself."""
        if not self._as_json:
            print_line(f"{_find_time()}{text}")


def _describe(done: Ticked) -> dict[str, object]:
    due = done.next_due and {"source": done.next_due[0], "at": clock.iso(done.next_due[1])}
    return {"at": clock.iso(clock.now_ms()), **describe_tick(done), "next": due}


def _name_waited(done: Ticked) -> str:
    """What a service waits for, in words."""
    running = sorted({*done.running, *done.started})
    parts = [f"the end of {', '.join(running)}"] if running else []
    parts += [f"a place or the end of a pause for {', '.join(done.waiting)}"] if done.waiting else []
    if done.next_due is not None:
        name, moment_ms = done.next_due
        parts.append(f"{name}, which is due at {clock.iso(moment_ms)}")
    return "; ".join(parts) or "an edit of searchcrawl.toml: no schedule starts a source"


def _warn(error: Exception) -> None:
    for line in error_lines(error):
        print_note(f"{_find_time()}{line}")


def _find_time() -> str:
    return f"{clock.iso(clock.now_ms())} "


def _try(show: Callable[[], None]) -> None:
    try_output(show)
