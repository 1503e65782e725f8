"""One log per source, in ``logs.dir`` (J3); people see warnings on standard error besides."""

from __future__ import annotations

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from searchcrawl.exceptions import CacheError
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.sources.secrets import redacted

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _OneLine(logging.Formatter):
    """A record is a line without secrets, whatever a page or a URL says (findings O3, O4); tracebacks follow indented."""

    def format(self, record: logging.LogRecord) -> str:
        text = redacted(super().format(record))
        first, *rest = text.splitlines() or [""]
        clean = ["".join(c if c.isprintable() else "?" for c in line) for line in (first, *rest)]
        return "\n    ".join(clean)


class _Brief(_OneLine):
    """Without tracebacks: those are in the log."""

    def format(self, record: logging.LogRecord) -> str:
        brief = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None, "stack_info": None})
        return super().format(brief)


def install_run_log(project: Project, source: Source, *, copy_to: str | None = None, level: str | None = None) -> None:
    """Sends the log of this process to the source's file, and to ``copy_to``; raises CacheError for no such file.

    ``level`` goes before ``logs.level``.
    """
    level = level or project.logs.level
    files = [_run_file(project, source), *([_copy(Path(copy_to))] if copy_to else [])]
    screen = logging.StreamHandler(sys.stderr)
    screen.setLevel(logging.ERROR)
    screen.setFormatter(_Brief("%(levelname)s: %(message)s"))
    root = logging.getLogger()
    for before in root.handlers:
        before.close()
    root.handlers[:] = [*files, screen]
    for file in files:
        # Scrapy opens the root logger to everything: what is below the level has to be stopped here.
        file.setFormatter(_OneLine(_FORMAT))
        file.setLevel(level)
    for name in ("searchcrawl", "scrapy", "twisted"):
        logging.getLogger(name).setLevel(level)
    for noisy in ("alembic", "asyncio", "aiohttp", "urllib3", "pysolr", "scrapy.middleware", "scrapy.statscollectors"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _run_file(project: Project, source: Source) -> logging.Handler:
    path = project.logs_dir / f"{source.name}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return RotatingFileHandler(
            path, maxBytes=project.logs.max_bytes, backupCount=project.logs.backups, encoding="utf-8"
        )
    except OSError as error:
        raise CacheError(f"log {path}: {error.strerror or error}") from error


def _copy(path: Path) -> logging.Handler:
    """The log of one job, as scrapyd shows it."""
    try:
        return logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise CacheError(f"log {path}: {error.strerror or error}") from error
