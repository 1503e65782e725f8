"""What all commands share: options, exit codes, errors on one line, and how answers are printed."""

from __future__ import annotations

import argparse
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final

import orjson
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

from searchcrawl.exceptions import (
    CacheError,
    ConfigurationError,
    DeliveryError,
    IndexMisconfigured,
    InvalidFile,
    InvalidUrl,
    LeaseLost,
    SearchcrawlError,
    SourceBusy,
    StoreError,
    UnknownAttribute,
    UnknownSource,
    UnsupportedByIndex,
)
from searchcrawl.sources.checking import one_line
from searchcrawl.sources.loading import find_project, load_project
from searchcrawl.sources.project import Project
from searchcrawl.sources.secrets import redacted


class Exit(IntEnum):
    """How a command ended (interface.md §2)."""

    DONE = 0
    #: ``verify``: a difference stands
    DIFFERENT = 1
    WRONG_USE = 2
    #: a limit, ``stop`` or a signal
    ENDED_EARLY = 3
    CONFIGURATION = 4
    BUSY = 5
    INDEX_AWAY = 6
    STORE_FAILED = 7
    NO_START = 8
    QUARANTINE = 9


_EXITS: Final[Mapping[type[Exception], Exit]] = {
    UnknownSource: Exit.WRONG_USE,
    UnknownAttribute: Exit.WRONG_USE,
    InvalidUrl: Exit.WRONG_USE,
    ConfigurationError: Exit.CONFIGURATION,
    UnsupportedByIndex: Exit.CONFIGURATION,
    SourceBusy: Exit.BUSY,
    DeliveryError: Exit.INDEX_AWAY,
    StoreError: Exit.STORE_FAILED,
    CacheError: Exit.STORE_FAILED,
    LeaseLost: Exit.STORE_FAILED,
    OSError: Exit.STORE_FAILED,
}

#: Where output is no terminal, a table must not be wrapped to a width nobody chose.
_WIDTH_IN_PIPES: Final = 10_000


class Command(ScrapyCommand):
    """Base of our commands; a module of ``commands/`` has one subclass, named by the module.

    A command says how many ``arguments`` it takes (at least, at most; None: any number), gives an
    ``example``, and answers. It raises errors of ``exceptions`` for what went wrong.
    """

    requires_project = False
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    arguments: ClassVar[tuple[int, int | None]] = (0, 0)
    example: ClassVar[str] = ""

    @property
    def name(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    @abstractmethod
    def answer(self, args: list[str], opts: argparse.Namespace) -> int | None:
        """Does the work and prints; the exit code, None being 0."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.prog = f"searchcrawl {self.name}"
        parser.usage = f"searchcrawl {self.name} [options] {self.syntax()}".rstrip()
        parser.epilog = f"Example: {self.example}" if self.example else None
        parser.add_argument("--json", action="store_true", help="print JSON: one object, or one a line for lists")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Rejects what Scrapy would ignore: unknown options and arguments too many."""
        args[:] = _positional(args)
        least, most = self.arguments
        if len(args) < least:
            raise UsageError(f"missing argument: searchcrawl {self.name} {self.syntax()}")
        if most is not None and len(args) > most:
            raise UsageError(f"unrecognized argument: {args[most]}")
        super().process_options(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        self.exitcode = self.guarded(args, opts)

    def guarded(self, args: list[str], opts: argparse.Namespace) -> int:
        """The exit code of ``answer``; errors raised on purpose become a line and their code."""
        try:
            return self.answer(args, opts) or Exit.DONE
        except BrokenPipeError:
            # The reader has seen enough (``| head``); nothing may be written at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return Exit.DONE
        except (SearchcrawlError, OSError) as error:
            print_error(error)
            return exit_of(error)

    def loaded_settings(self) -> Settings:
        """The settings that Scrapy's command line gave to this command."""
        if self.settings is None:
            raise RuntimeError("a command has its settings only on the command line")
        return self.settings

    def load_project(self) -> Project:
        """The project of the working directory or of SEARCHCRAWL_PROJECT; raises ConfigurationError."""
        return load_project(find_project())


def _positional(args: Sequence[str]) -> list[str]:
    """The arguments without ``--``; raises UsageError for an option that nobody knows."""
    end = args.index("--") if "--" in args else len(args)
    unknown = [arg for arg in args[:end] if arg.startswith("-") and arg != "-"]
    if unknown:
        raise UsageError(f"unrecognized option: {unknown[0]}")
    return [*args[:end], *args[end + 1 :]]


def exit_of(error: Exception) -> Exit:
    """The exit code of an error of ``exceptions`` or of the operating system."""
    return next((code for kind, code in _EXITS.items() if isinstance(error, kind)), Exit.STORE_FAILED)


def error_lines(error: Exception) -> list[str]:
    """An error as lines for people, without secrets; those of a file are ``FILE: KEY: what is wrong (got …)``."""
    if isinstance(error, InvalidFile):
        lines = [str(each) for each in error.errors]
    elif isinstance(error, ConfigurationError | IndexMisconfigured):
        lines = [str(error)]
    else:
        lines = [f"searchcrawl: {error}"]
    return [redacted(one_line(line)) for line in lines]


def print_error(error: Exception) -> None:
    """Writes an error to standard error, a line each, without a traceback."""
    for line in error_lines(error):
        print(line, file=sys.stderr)


def print_object(value: Mapping[str, Any]) -> None:
    """Writes one JSON object on one line."""
    sys.stdout.write(orjson.dumps(value).decode() + "\n")


def print_objects(values: Iterable[Mapping[str, Any]]) -> None:
    """Writes one JSON object a line."""
    for value in values:
        print_object(value)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Writes a table for people: numbers to the right, None as nothing, no value steers the terminal."""
    # Rich is heavy, and a crawl that prints JSON does without.
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = console_for_answers()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    held = [tuple(row) for row in rows]
    for number, column in enumerate(columns):
        numeric = bool(held) and all(isinstance(row[number], int | float | None) for row in held)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in held:
        table.add_row(*(Text("" if cell is None else one_line(str(cell))) for cell in row))
    if title is not None:
        # As a title of the table it would be folded to the width of the columns.
        console.print(Text(one_line(title)), soft_wrap=True)
    console.print(table)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Draws how many of how many are done, on standard error; None where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # heavy
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(one_line(title), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def console_for_answers() -> Console:
    """A console on standard output: as wide as the terminal, without colour and wrapping elsewhere."""
    from rich.console import Console  # noqa: PLC0415  # heavy

    is_terminal = sys.stdout.isatty()
    return Console(highlight=False, markup=False, emoji=False, width=None if is_terminal else _WIDTH_IN_PIPES)
