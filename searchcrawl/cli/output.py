"""The mouth of all commands: lines, errors on one line, JSON, tables, progress bars. Nothing of it steers a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import orjson

from searchcrawl.exceptions import ConfigurationError, IndexMisconfigured, InvalidFile
from searchcrawl.sources.secrets import redact
from searchcrawl.terminal import escape_json, guard_logs, guard_streams, make_console, to_one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: The width of tables if output is no terminal: they must not be wrapped to a width that nobody chose.
_WIDTH_IN_PIPES: Final = 10_000


def guard_output() -> None:
    """Guards what this process writes from now on, also what libraries print and log; once is enough."""
    guard_streams(alter_errors=redact)
    guard_logs(alter=redact)


def drop_output() -> None:
    """Has nothing more written to standard output, whose reader has ended (``| head``); not at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush_output() -> None:
    """Hands over what was written so far, for a process that is to end at once."""
    sys.stdout.flush()
    sys.stderr.flush()


def print_line(text: str = "") -> None:
    """Writes one line to standard output, whatever ``text`` holds."""
    sys.stdout.write(f"{to_one_line(text)}\n")


def print_note(text: str) -> None:
    """Writes one line to standard error, without secrets."""
    sys.stderr.write(f"{to_one_line(redact(text))}\n")


def error_lines(error: Exception) -> list[str]:
    """An error as lines for people; errors of a file are ``FILE: KEY: what is wrong (got …)``."""
    if isinstance(error, InvalidFile):
        return [str(each) for each in error.errors]
    if isinstance(error, ConfigurationError | IndexMisconfigured):
        return [str(error)]
    return [f"searchcrawl: {error}"]


def print_error(error: Exception) -> None:
    """Writes an error to standard error, a line each, without a traceback."""
    for line in error_lines(error):
        print_note(line)


def print_warnings(errors: Iterable[Exception]) -> None:
    """Writes the errors of files that are left out to standard error."""
    for error in errors:
        for line in error_lines(error):
            print_note(f"warning: {line}")


def print_object(value: Mapping[str, Any]) -> None:
    """Writes one JSON object on one line."""
    sys.stdout.write(escape_json(orjson.dumps(value).decode()) + "\n")


def print_objects(values: Iterable[Mapping[str, Any]]) -> None:
    """Writes one JSON object a line."""
    for value in values:
        print_object(value)


def print_lists(
    head: Mapping[str, Any], lists: Mapping[str, Iterable[Mapping[str, Any]]], tail: Mapping[str, Any]
) -> None:
    """Writes one JSON object on one line: ``head``, then lists that need not fit into memory, then ``tail``."""
    sys.stdout.write(escape_json(orjson.dumps(head).decode())[:-1])
    for name, values in lists.items():
        sys.stdout.write(f',"{name}":[')
        for number, value in enumerate(values):
            sys.stdout.write("," * bool(number) + escape_json(orjson.dumps(value).decode()))
        sys.stdout.write("]")
    sys.stdout.write("," + escape_json(orjson.dumps(tail).decode())[1:] + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Prints a table for people: numbers to the right, None as empty."""
    # Rich is slow to load, and a crawl that prints JSON does not need it.
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    console = console_for_answers()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    listed = [tuple(row) for row in rows]
    for number, column in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[number], int | float | None) for row in listed)
        table.add_column(styled(column), justify="right" if numeric else "left", overflow="fold")
    for row in listed:
        table.add_row(*(styled("" if cell is None else str(cell)) for cell in row))
    if title is not None:
        # As the title of the table it would be wrapped to the width of the columns.
        console.print(styled(title), soft_wrap=True)
    console.print(table)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Shows progress on standard error: how many of how many are done; yields None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415  # heavy

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = make_console(sys.stderr)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as progress:
        task = progress.add_task(to_one_line(title), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def console_for_answers() -> Console:
    """A console on standard output: as wide as the terminal, without colour and wrapping elsewhere."""
    return make_console(sys.stdout, width=None if sys.stdout.isatty() else _WIDTH_IN_PIPES)


def styled(text: str, style: str = "") -> Text:
    """A text on one line for such a console and for tables."""
    from rich.text import Text  # noqa: PLC0415  # heavy

    return Text(to_one_line(text), style=style)
