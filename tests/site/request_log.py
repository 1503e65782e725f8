"""What was asked of the site: kept in memory for tests, and as JSON lines in a file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.site.wire import Request, Wire


class RequestLog:
    """Entries in order of arrival; a line is written when its answer has ended.

    An entry has ``time`` and ``ended`` (Unix seconds), ``method``, ``host``, ``path``, ``query``, ``status`` (null: no
    answer yet, or none ever), ``headers`` (names in lower case), ``bytes`` sent and ``open`` (requests to that host
    in progress at its arrival, itself among them).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a", encoding="utf-8")
        self._entries: list[dict[str, Any]] = []
        self._open: dict[str, int] = {}

    def begin(self, request: Request) -> dict[str, Any]:
        """Notes the arrival of ``request``."""
        self._open[request.host] = self._open.get(request.host, 0) + 1
        entry = {
            "time": request.time,
            "ended": None,
            "method": request.method,
            "host": request.host,
            "path": request.path,
            "query": request.query,
            "status": None,
            "headers": request.headers,
            "bytes": 0,
            "open": self._open[request.host],
        }
        self._entries.append(entry)
        return entry

    def end(self, entry: dict[str, Any], wire: Wire) -> None:
        """Notes how the answer ended and writes the line."""
        self._open[entry["host"]] -= 1
        entry.update(status=wire.status, bytes=wire.bytes_sent, ended=round(time.time(), 3))
        self._file.write(json.dumps(entry) + "\n")

    def entries(self, since: int) -> list[dict[str, Any]]:
        """The entries from the ``since``-th on."""
        self._file.flush()
        return self._entries[since:]

    def clear(self) -> None:
        """Forgets all entries, also those in the file."""
        self._entries.clear()
        self._file.seek(0)
        self._file.truncate()

    def flush(self) -> None:
        """Writes out what is buffered."""
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
