"""What reaches a terminal, a pipe or a log: text that cannot steer it, whatever a page, a URL or a server wrote (X-O4).

Characters that steer are escaped: controls (below U+0020, U+007F to U+009F), overrides and isolates of direction,
separators of lines, invisible tags, and what is no character at all. All others stay as they are: other scripts and
their marks of direction, joiners, blanks of all widths, emoji, flags made of tags, and characters that are newer than
this Python.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

#: The last two characters of each plane are none.
_NONE: Final = "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
_STEERING: Final = (
    "\x00-\x1f\x7f-\x9f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ufdd0-\ufdef\ud800-\udfff"
    f"\U0001d173-\U0001d17a\U000e0000-\U000e0fff{_NONE}"
)
#: The flag of a region, as that of Scotland: a black flag, tags that spell its code, and the tag that ends it.
_FLAG: Final = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
_ONE_LINE: Final = re.compile(f"({_FLAG})|[{_STEERING}]")
_SEVERAL_LINES: Final = re.compile(rf"({_FLAG})|(?![\n\t])[{_STEERING}]")
#: Begins at no second blank: blanks at the end of a text would be tried from each of them on.
_WORD: Final = re.compile(r"(?<! ) *+[^ ]+")
_USUAL_WIDTH: Final = 80
_STANDARD_OUTPUT: Final = 1


def to_one_line(text: str) -> str:
    """``text`` on one line that steers nothing: line breaks, and all characters that steer, are escaped."""
    if text.isascii() and text.isprintable():
        return text
    return _ONE_LINE.sub(_escape, text)


def to_lines(text: str) -> str:
    """The same for text of several lines: its line feeds and tabs stay."""
    return _SEVERAL_LINES.sub(_escape, text)


def escape_json(text: str) -> str:
    """A JSON text of the same meaning that steers nothing: what would is written as its number."""
    if text.isascii() and text.isprintable():
        return text
    return _ONE_LINE.sub(_escape_in_json, text)


def _escape(found: re.Match[str]) -> str:
    return found[1] or found[0].encode("unicode_escape").decode("ascii")


def _escape_in_json(found: re.Match[str]) -> str:
    if found[1]:
        return found[1]
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


class GuardedStream:
    """A text stream that what is written to it cannot steer; all else is that of the stream inside.

    ``may_fail``: where nothing can be written to it, it takes everything and keeps nothing from then on.
    """

    def __init__(self, stream: TextIO, alter: Callable[[str], str] | None = None, *, may_fail: bool = False) -> None:
        #: The stream inside, for what steers the terminal on purpose.
        self.inner = stream
        self._alter = alter
        self._may_fail = may_fail
        #: Whether somebody may still read it.
        self.is_read = True

    def write(self, text: str) -> int:
        """Writes ``text``, altered first where that was asked for."""
        with self._surviving():
            self.inner.write(to_lines(text if self._alter is None else self._alter(text)))
        return len(text)

    def flush(self) -> None:
        """Hands over what was written so far."""
        with self._surviving():
            self.inner.flush()

    def drop(self) -> None:
        """Has nothing more written: its reader has ended (``| head``), or it cannot be written."""
        self.is_read = False
        send_nowhere(self.inner)

    def writelines(self, lines: Any) -> None:
        """Writes each of ``lines``."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # The command goes on, and ends with its own code.
            self.drop()
        except OSError:
            if not self._may_fail:
                raise
            self.drop()


def guard_streams(*, alter_errors: Callable[[str], str]) -> None:
    """Guards standard output and standard error of this process, whoever writes there; once is enough.

    It is also for what libraries print, for messages of argparse, warnings, and tracebacks, whose errors quote pages.
    ``alter_errors`` changes what goes to standard error (it takes out secrets). A stream that the caller has closed
    (``2>&-``) takes everything and keeps nothing, and so does a standard error whose disk is full or whose reader ended: a
    command goes on without it.
    """
    if not isinstance(sys.stdout, GuardedStream):
        sys.stdout = cast(TextIO, GuardedStream(sys.stdout or _open_nowhere()))
    if not isinstance(sys.stderr, GuardedStream):
        sys.stderr = cast(TextIO, GuardedStream(sys.stderr or _open_nowhere(), alter_errors, may_fail=True))


def send_prints_to_errors() -> None:
    """Has all that this process and its libraries write to standard output go to standard error."""
    sys.stdout = sys.stderr
    # Python sets it to None where the caller has closed it.
    if (errors := cast("TextIO | None", sys.stderr)) is not None:
        os.dup2(errors.fileno(), _STANDARD_OUTPUT)


def send_nowhere(stream: TextIO) -> None:
    """Has nothing more written where a stream leads, nor what is in its buffer, which Python would try again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _open_nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def guard_logs(*, alter: Callable[[str], str]) -> None:
    """Has every log of this process clean, whoever formats and writes it; ``alter`` is applied before."""

    def clean(text: str) -> str:
        return to_lines(alter(text))

    class CleanRecord(logging.LogRecord):
        def getMessage(self) -> str:
            return clean(super().getMessage())

        def __setattr__(self, name: str, value: Any) -> None:
            # Formatters set the text of a traceback.
            super().__setattr__(name, clean(value) if name in {"exc_text", "stack_info"} and value else value)

    logging.setLogRecordFactory(CleanRecord)


def wrap_line(text: str, width: int, *, hang: int | None = None) -> list[str]:
    """``text`` on lines of at most ``width`` columns, broken at blanks.

    Further lines are indented by ``hang`` columns, if it is None by two more than the first.
    A word that is wider, as a URL, stays whole: a terminal folds it.
    """
    if text.isascii() and len(text) <= width:
        return [text]
    measure: Callable[[str], int] = len
    if not text.isascii():
        from rich.cells import cell_len as measure  # noqa: PLC0415  # heavy
    margin = " " * (len(text) - len(text.lstrip(" ")) + 2 if hang is None else hang)
    lines, line, at = [], "", 0
    for found in _WORD.finditer(text):
        if line and at + measure(found[0]) > width:
            lines.append(line)
            word = found[0].lstrip(" ")
            # A wide word begins further to the left.
            line = margin[: max(0, width - measure(word))] + word
            at = measure(line)
        else:
            line += found[0]
            at += measure(found[0])
    return [*lines, line]


def find_width(stream: TextIO) -> int | None:
    """The columns of the terminal that a stream writes to; None where it is none."""
    if not stream.isatty():
        return None
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH


def make_console(stream: TextIO, **options: Any) -> Console:
    """A console that draws on ``stream``, with codes that steer a terminal: texts must be clean before."""
    from rich.console import Console  # noqa: PLC0415  # heavy

    inner = stream.inner if isinstance(stream, GuardedStream) else stream
    console = Console(file=inner, highlight=False, markup=False, emoji=False, **options)
    if isinstance(stream, GuardedStream):
        # Its own ends the process with 1.
        console.on_broken_pipe = stream.drop  # type: ignore[method-assign]
    return console
