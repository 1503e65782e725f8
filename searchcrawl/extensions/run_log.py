"""One log per source, in ``logs.dir`` (J3); errors are also shown on standard error."""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final, TextIO

from searchcrawl.durable import make_folder
from searchcrawl.exceptions import LogError
from searchcrawl.messages import find_id, set_levels
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.sources.secrets import redact
from searchcrawl.terminal import to_one_line

logger = logging.getLogger(__name__)

#: So many errors of one kind are shown on standard error.
_MOST_SHOWN: Final = 10
_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s%(id)s: %(message)s"


class LogFile(RotatingFileHandler):
    """A log file that reports its first failure, once, so that the run can end (X-S5).

    It begins a new file at ``max_bytes`` (0: never) and keeps ``backups``. Raises LogError if it cannot be opened.
    """

    def __init__(self, path: Path, *, max_bytes: int = 0, backups: int = 0) -> None:
        self._path = path
        self._failure: LogError | None = None
        self._tell: Callable[[LogError], None] | None = None
        try:
            make_folder(path.parent)
            super().__init__(path, maxBytes=max_bytes, backupCount=backups, encoding="utf-8")
        except OSError as error:
            raise self._build_error(error) from error

    def on_failure(self, tell: Callable[[LogError], None]) -> None:
        """Has ``tell`` called, in any thread, when the file can no longer be written; at once if that is so already."""
        self._tell = tell
        if self._failure is not None:
            tell(self._failure)

    def emit(self, record: logging.LogRecord) -> None:
        if self._failure is not None:
            return
        try:
            self._follow_path()
        except OSError:
            self.handleError(record)
        else:
            super().emit(record)

    def _follow_path(self) -> None:
        """Begins the file anew where somebody has removed or renamed it: a run may go on for days after that."""
        try:
            there: os.stat_result | None = self._path.stat()
        except FileNotFoundError:
            there = None
        if self.stream is None or (there is not None and os.path.samestat(there, os.fstat(self.stream.fileno()))):
            return
        self._close_without_flush()
        make_folder(self._path.parent)
        self.stream = self._open()

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self._failure = self._build_error(error)
        self._close_without_flush()
        if self._tell is not None:
            self._tell(self._failure)

    def _close_without_flush(self) -> None:
        """Closes the file and drops unwritten text; otherwise writing it would be tried again at exit."""
        stream, self.stream = self.stream, None
        try:
            if stream is not None:
                stream.close()
        except OSError:
            # The file is closed in spite of the error, and this failure was reported already.
            return

    def _build_error(self, error: OSError) -> LogError:
        return LogError(f"log {self._path}: {error.strerror or error}")


class OneLine(logging.Formatter):
    """Formats a record as one line without secrets, whatever it quotes (X-O3, X-O4); tracebacks follow, indented."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n    ".join(map(to_one_line, redact(super().format(record)).rstrip("\n").split("\n")))


class _WithId(OneLine):
    """Formats a record with the id of its message, where it is one of ours."""

    def format(self, record: logging.LogRecord) -> str:
        found = find_id(record)
        record.id = f" [{found}]" if found else ""
        return super().format(record)


class _Brief(OneLine):
    """Formats a record without its traceback, which only the log has."""

    def format(self, record: logging.LogRecord) -> str:
        brief = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None, "stack_info": None})
        return super().format(brief)


class _Screen(logging.StreamHandler[TextIO]):
    """Shows errors on standard error, of each kind the first ones: a lost cache has one for each of its pages."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._seen: Counter[tuple[str, int]] = Counter()
        self.setLevel(logging.ERROR)
        self.setFormatter(_Brief("%(levelname)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        place = (record.pathname, record.lineno)
        self._seen[place] += 1
        if self._seen[place] <= _MOST_SHOWN:
            super().emit(record)
        if self._seen[place] == _MOST_SHOWN:
            self.stream.write("more errors of this kind are in the log alone\n")


def install_run_log(
    project: Project, source: Source, *, copy_to: str | None = None, level: str | None = None
) -> list[LogFile]:
    """Sends the log of this process to the source's file, and to ``copy_to`` (as scrapyd shows it); both files.

    ``level`` goes before ``logs.level``. Raises LogError where a file cannot be opened.
    """
    level = level or project.logs.level
    path, logs = project.logs_dir / f"{source.name}.log", project.logs
    files = [LogFile(path, max_bytes=logs.max_bytes, backups=logs.backups)]
    if copy_to:
        files.append(LogFile(Path(copy_to)))
    root = logging.getLogger()
    for before in root.handlers:
        before.close()
    root.handlers[:] = [*files, _Screen()]
    for file in files:
        # Scrapy opens the root logger to everything: what is below the level has to be stopped here.
        file.setFormatter(_WithId(_FORMAT))
        file.setLevel(level)
    set_levels(level)
    return files


def append_refusal(path: Path, code: int, reason: str) -> None:
    """Writes why a crawl ended without a run to the log that was asked for, as scrapyd shows it.

    A file that cannot be written is left: standard error has the reason.
    """
    try:
        file = LogFile(path)
    except LogError:
        return
    file.setFormatter(_WithId(_FORMAT))
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(file)
    try:
        logger.error("no run, exit %d: %s", code, reason)
    finally:
        logger.removeHandler(file)
        logger.propagate = propagated
        file.close()
