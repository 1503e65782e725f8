"""The HTTP interface of scrapyd with a password; it refuses requests from pages of other origins (X-D14, X-O1).

Only scrapyd loads it, as ``webroot`` of deploy/scrapyd.conf.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from scrapyd.exceptions import ConfigError
from scrapyd.webservice import spider_list
from scrapyd.website import Root
from twisted.web.pages import forbidden

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.files import list_source_files, list_spider_files
from searchcrawl.sources.loading import find_project

_SAME: Final = frozenset({"same-origin", "none"})


class GuardedRoot(Root):  # type: ignore[misc]  # scrapyd ships no type hints
    """Refuses requests for other hosts than ``allowed_hosts``, and those that another origin's page sends.

    Raises ConfigError, with which scrapyd ends, where there is no user name or no password.
    """

    def __init__(self, config: Any, app: Any) -> None:
        for name in ("username", "password"):
            if not (os.environ.get(f"SCRAPYD_{name.upper()}") or config.get(name, "")):
                raise ConfigError(f"scrapyd.conf: {name} is required: set SCRAPYD_{name.upper()}")
        super().__init__(config, app)
        self._allowed_hosts = frozenset(config.get("allowed_hosts", "127.0.0.1 localhost").lower().split())
        self._files: tuple[tuple[str, int], ...] = ()

    def getChildWithDefault(self, path: bytes, request: Any) -> Any:
        host = request.getHeader("host") or ""
        if _host_of(f"//{host}") not in self._allowed_hosts:
            return forbidden("This host is not in allowed_hosts.")
        origin = request.getHeader("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return forbidden("Another origin asks.")
        if (request.getHeader("sec-fetch-site") or "none") not in _SAME:
            return forbidden("Another site asks.")
        self._forget_old_list()
        return super().getChildWithDefault(path, request)

    def _forget_old_list(self) -> None:
        """Scrapyd lists the spiders once: where a file came, went or was edited it lists them anew."""
        files = tuple(sorted((path.name, path.stat().st_mtime_ns) for path in find_sources()))
        if files != self._files:
            self._files = files
            spider_list.cache.clear()


def find_sources() -> list[Path]:
    """The files of the project's sources and spiders; none where it is not there just now."""
    try:
        root = find_project()
        return [path for path in (*list_source_files(root), *list_spider_files(root)) if path.is_file()]
    except (ConfigurationError, OSError):
        return []


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
