"""What commands print: errors on one line, JSON, tables, progress bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import orjson

from searchcrawl.exceptions import ConfigurationError, IndexMisconfigured, InvalidFile
from searchcrawl.sources.checking import to_one_line
from searchcrawl.sources.secrets import redact

if TYPE_CHECKING:
    from rich.console import Console

#: The width of tables if output is no terminal: they must not be wrapped to a width that nobody chose.
_WIDTH_IN_PIPES: Final = 10_000


def error_lines(error: Exception) -> list[str]:
    """An error as lines for people, without secrets; errors of a file are ``FILE: KEY: what is wrong (got …)``."""
    if isinstance(error, InvalidFile):
        lines = [str(each) for each in error.errors]
    elif isinstance(error, ConfigurationError | IndexMisconfigured):
        lines = [str(error)]
    else:
        lines = [f"searchcrawl: {error}"]
    return [redact(to_one_line(line)) for line in lines]


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
    """Prints a table for people: numbers to the right, None as empty; no value can control the terminal."""
    # Rich is slow to load, and a crawl that prints JSON does not need it.
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = console_for_answers()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    listed = [tuple(row) for row in rows]
    for number, column in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[number], int | float | None) for row in listed)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in listed:
        table.add_row(*(Text("" if cell is None else to_one_line(str(cell))) for cell in row))
    if title is not None:
        # As the title of the table it would be wrapped to the width of the columns.
        console.print(Text(to_one_line(title)), soft_wrap=True)
    console.print(table)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Shows progress on standard error: how many of how many are done; yields None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # heavy
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(to_one_line(title), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def console_for_answers() -> Console:
    """A console on standard output: as wide as the terminal, without colour and wrapping elsewhere."""
    from rich.console import Console  # noqa: PLC0415  # heavy

    is_terminal = sys.stdout.isatty()
    return Console(highlight=False, markup=False, emoji=False, width=None if is_terminal else _WIDTH_IN_PIPES)
