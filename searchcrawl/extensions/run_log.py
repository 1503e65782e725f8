"""One log per source, in ``logs.dir`` (J3); people see warnings on standard error besides."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Final

from searchcrawl.extensions.log_file import LogFile
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.sources.secrets import redact

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _OneLine(logging.Formatter):
    """A record is a line without secrets, whatever a page or a URL says (X-O3, X-O4); tracebacks follow indented."""

    def format(self, record: logging.LogRecord) -> str:
        text = redact(super().format(record))
        first, *rest = text.splitlines() or [""]
        clean = ["".join(c if c.isprintable() else "?" for c in line) for line in (first, *rest)]
        return "\n    ".join(clean)


class _Brief(_OneLine):
    """Without tracebacks: those are in the log."""

    def format(self, record: logging.LogRecord) -> str:
        brief = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None, "stack_info": None})
        return super().format(brief)


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
    return files
