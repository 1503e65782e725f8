"""The file of a log: one that cannot be written ends the run, once, instead of being missed (X-S5)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from logging import LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path

from searchcrawl.exceptions import LogError


class LogFile(RotatingFileHandler):
    """Begins a new file at ``max_bytes`` (0: never) and keeps ``backups``; raises LogError where it cannot be opened."""

    def __init__(self, path: Path, *, max_bytes: int = 0, backups: int = 0) -> None:
        self._path = path
        self._failure: LogError | None = None
        self._tell: Callable[[LogError], None] | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            super().__init__(path, maxBytes=max_bytes, backupCount=backups, encoding="utf-8")
        except OSError as error:
            raise self._named(error) from error

    def on_failure(self, tell: Callable[[LogError], None]) -> None:
        """Has ``tell`` called, in any thread, when the file cannot be written any more; at once if it is so already."""
        self._tell = tell
        if self._failure is not None:
            tell(self._failure)

    def emit(self, record: LogRecord) -> None:
        if self._failure is None:
            super().emit(record)

    def handleError(self, record: LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self._failure = self._named(error)
        self._let_go()
        if self._tell is not None:
            self._tell(self._failure)

    def _let_go(self) -> None:
        """Closes the file without what it still holds back, which would be tried again at exit."""
        stream, self.stream = self.stream, None
        try:
            if stream is not None:
                stream.close()
        except OSError:
            # It is closed all the same, and this is the failure that was told.
            return

    def _named(self, error: OSError) -> LogError:
        return LogError(f"log {self._path}: {error.strerror or error}")
