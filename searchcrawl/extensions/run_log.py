"""One log per source, in ``logs.dir`` (J3); people see warnings on standard error besides."""

from __future__ import annotations

import logging
import sys
from logging.handlers import RotatingFileHandler
from typing import Final

from searchcrawl.exceptions import CacheError
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _OneLine(logging.Formatter):
    """A record is a line, whatever a page or a URL says (findings O4); tracebacks follow indented."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        first, *rest = text.splitlines() or [""]
        clean = ["".join(c if c.isprintable() else "?" for c in line) for line in (first, *rest)]
        return "\n    ".join(clean)


class _Brief(_OneLine):
    """Without tracebacks: those are in the log."""

    def format(self, record: logging.LogRecord) -> str:
        brief = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None, "stack_info": None})
        return super().format(brief)


def install_run_log(project: Project, source: Source) -> None:
    """Sends the log of this process to the source's file; raises CacheError where it cannot be opened."""
    path = project.logs_dir / f"{source.name}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = RotatingFileHandler(
            path, maxBytes=project.logs.max_bytes, backupCount=project.logs.backups, encoding="utf-8"
        )
    except OSError as error:
        raise CacheError(f"log {path}: {error.strerror or error}") from error
    file.setFormatter(_OneLine(_FORMAT))
    screen = logging.StreamHandler(sys.stderr)
    screen.setLevel(logging.ERROR)
    screen.setFormatter(_Brief("%(levelname)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [file, screen]
    # Scrapy opens the root logger to everything: what is below the level has to be stopped here.
    file.setLevel(project.logs.level)
    for name in ("searchcrawl", "scrapy", "twisted"):
        logging.getLogger(name).setLevel(project.logs.level)
    for noisy in ("alembic", "asyncio", "aiohttp", "urllib3", "pysolr", "scrapy.middleware", "scrapy.statscollectors"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
