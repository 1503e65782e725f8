"""The mouth of all commands: lines, errors on one line, JSON, tables, progress bars. Nothing of it steers a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeVar

import orjson

from searchcrawl.exceptions import ConfigurationError, IndexMisconfigured, InvalidFile
from searchcrawl.sources.secrets import redact
from searchcrawl.terminal import (
    GuardedStream,
    escape_json,
    find_width,
    guard_logs,
    guard_streams,
    make_console,
    to_one_line,
    wrap_line,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: The width of tables if output is no terminal: they must not be wrapped to a width that nobody chose.
_WIDTH_IN_PIPES: Final = 10_000
#: Of a table: what is beside its columns, and between two of them.
_BORDERS: Final = 2
_GAP: Final = 2
#: Standard output, while ``sys.stdout`` is standard error.
_APART: Final[list[TextIO]] = []
#: The least width to which a URL or a path is folded.
_FOLDED: Final = 16
T = TypeVar("T")


def guard_output() -> None:
    """Guards what this process writes from now on, also what libraries print and log; once is enough."""
    guard_streams(alter_errors=redact)
    guard_logs(alter=redact)


@contextmanager
def answers_apart() -> Iterator[None]:
    """Has what code of users and libraries prints go to standard error: standard output has what a command answers."""
    _APART.append(sys.stdout)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = _APART.pop()


@contextmanager
def prints_among_answers() -> Iterator[None]:
    """Undoes that for a spider in Python, which may print and write its items there."""
    before, sys.stdout = sys.stdout, _answers()
    try:
        yield
    finally:
        sys.stdout = before


def _answers() -> TextIO:
    return _APART[-1] if _APART else sys.stdout


def while_read(rows: Iterable[T]) -> Iterator[T]:
    """The rows of a list, as long as somebody reads the answer (``| head``)."""
    answers = _answers()
    for row in rows:
        yield row
        if isinstance(answers, GuardedStream) and not answers.is_read:
            return


def flush_output() -> None:
    """Hands over what was written so far, for a process that is to end at once."""
    sys.stderr.flush()
    _answers().flush()


def try_output(show: Callable[[], None] = lambda: None) -> OSError | None:
    """Calls what writes an answer, and hands it over; returns why it cannot be written. Then nothing more is tried.

    For what must go on without its answer, and for the end of a process: Python itself would end it with 120.
    """
    try:
        show()
        flush_output()
    except OSError as error:
        if isinstance(answers := _answers(), GuardedStream):
            answers.drop()
        return error
    return None


def is_on_terminal() -> bool:
    """Whether a person reads standard output as it is written."""
    return _answers().isatty()


def print_line(text: str = "", *, hang: int | None = None) -> None:
    """Writes one line to standard output, whatever ``text`` holds; on a terminal it is wrapped at blanks.

    ``hang``: by how many columns further lines are indented; if it is None, by two more than the first.
    """
    _write_line(_answers(), to_one_line(text), hang)


def print_text(text: str) -> None:
    """Writes a text of our own as it is, on as many lines as it has."""
    _answers().write(text.rstrip("\n") + "\n")


def print_note(text: str) -> None:
    """Writes one line to standard error, without secrets; on a terminal it is wrapped at blanks."""
    _write_line(sys.stderr, to_one_line(redact(text)), None)


def _write_line(stream: TextIO, text: str, hang: int | None) -> None:
    width = find_width(stream)
    lines = [text] if width is None else wrap_line(text, width, hang=hang)
    stream.write("\n".join([*lines, ""]))


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
    _answers().write(escape_json(orjson.dumps(value).decode()) + "\n")


def print_answer(value: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Writes an answer as one JSON object, or the ``lines`` that people get in its place."""
    if as_json:
        print_object(value)
        return
    for line in lines:
        print_line(line)


def print_objects(values: Iterable[Mapping[str, Any]]) -> None:
    """Writes one JSON object a line."""
    for value in while_read(values):
        print_object(value)


def print_lists(
    head: Mapping[str, Any], lists: Mapping[str, Iterable[Mapping[str, Any]]], tail: Mapping[str, Any]
) -> None:
    """Writes one JSON object on one line: ``head``, then lists that need not fit into memory, then ``tail``."""
    _answers().write(escape_json(orjson.dumps(head).decode())[:-1])
    for name, values in lists.items():
        _answers().write(f',"{name}":[')
        for number, value in enumerate(values):
            _answers().write("," * bool(number) + escape_json(orjson.dumps(value).decode()))
        _answers().write("]")
    _answers().write("," + escape_json(orjson.dumps(tail).decode())[1:] + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Prints a table for people: numbers to the right, None as empty.

    On a terminal columns wrap at blanks; where even that is too wide, a row becomes a line for each of its cells.
    """
    # Rich is slow to load, and a crawl that prints JSON does not need it.
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    listed = [tuple(row) for row in rows]
    cells = [tuple("" if cell is None else str(cell) for cell in row) for row in listed]
    if title is not None:
        print_line(title)
    width = find_width(_answers())
    widths = None if width is None else fit_columns([columns, *cells], width - _BORDERS - _GAP * (len(columns) - 1))
    if width is not None and widths is None:
        _print_cells(columns, cells)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, column in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[number], int | float | None) for row in listed)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        fixed = None if widths is None else widths[number]
        table.add_column(styled(column), justify=justify, overflow="fold", width=fixed)
    for row in cells:
        table.add_row(*(styled(cell) for cell in row))
    console_for_answers().print(table)


def fit_columns(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """The widths of columns that fit into ``room`` without cutting a word; None where there are none.

    Words with a slash, as URLs and paths, may be folded to a width of 16.
    """
    from rich.cells import cell_len  # noqa: PLC0415  # heavy

    def measure(word: str) -> int:
        return min(cell_len(word), _FOLDED) if "/" in word else cell_len(word)

    columns = [*zip(*rows, strict=True)]
    widths = [max(map(cell_len, column)) for column in columns]
    least = [max((measure(word) for cell in column for word in cell.split()), default=0) for column in columns]
    if sum(least) > room:
        return None
    while (surplus := sum(widths) - room) > 0:
        slack, number = max(
            (width - low, number) for number, (width, low) in enumerate(zip(widths, least, strict=True))
        )
        second = sorted(width - low for width, low in zip(widths, least, strict=True))[-2:][0]
        # The column with the most to spare gives until another one has as much.
        widths[number] -= max(1, min(surplus, slack - second))
    return widths


def _print_cells(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    for row in rows:
        print_line()
        for column, cell in zip(columns, row, strict=True):
            print_line(f"{column}: {cell}" if column else cell)


def to_minute(moment: str) -> str:
    """An ISO 8601 moment in UTC without its seconds."""
    return f"{moment[:10]} {moment[11:16]}Z"


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
    return make_console(_answers(), width=None if _answers().isatty() else _WIDTH_IN_PIPES)


def styled(text: str, style: str = "") -> Text:
    """A text on one line for such a console and for tables."""
    from rich.text import Text  # noqa: PLC0415  # heavy

    return Text(to_one_line(text), style=style)
