"""The admin interface: JSON over HTTP under ``/-/`` on a port of its own.

====== ================== =======================================================================
GET    /-/health          ``{"port", "pages", "stages", "up"}``
GET    /-/pages           what is served
POST   /-/page            sets a page: ``host``, ``path`` and the fields of ``Site.set_page``
POST   /-/pages           ``pages``: sets all of a list
DELETE /-/page            ``host``, ``path``: answers 404 from now on
POST   /-/behaviour       a rule for a host or path: the fields of ``Behaviour``
DELETE /-/behaviour       ends the rules of one place (``host``, ``path``, ``prefix``), or all: ``{}``
POST   /-/stage           ``name``: lays a stage over the pages (also ``POST /-/stage/NAME``)
POST   /-/down, /-/up     the port refuses connections, or takes them again
POST   /-/reset           stage base, no behaviours, up
GET    /-/log             ``since`` in the query: ``{"requests": […], "next": N}``
DELETE /-/log             forgets the requests
====== ================== =======================================================================
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.site import content
from tests.site.listener import Listener
from tests.site.request_log import RequestLog
from tests.site.site import Site
from tests.site.wire import Request, Wire, head

Json = dict[str, Any]


class Admin:
    """Carries out admin requests; those that change pages are journalled, so that a restarted site has the same."""

    def __init__(self, site: Site, listener: Listener, log: RequestLog, journal: Path) -> None:
        self._site = site
        self._listener = listener
        self._log = log
        self._journal = journal
        self._lock = asyncio.Lock()
        self._operations: dict[tuple[str, str], Callable[[Json], Json]] = {
            ("GET", "health"): self._health,
            ("GET", "pages"): lambda _: {"pages": site.pages()},
            ("GET", "log"): self._read_log,
            ("DELETE", "log"): self._clear_log,
            ("POST", "behaviour"): self._set_behaviour,
            ("DELETE", "behaviour"): self._remove_behaviour,
        }
        self._changes: dict[tuple[str, str], Callable[[Json], Json]] = {
            ("POST", "page"): self._set_page,
            ("POST", "pages"): self._set_pages,
            ("DELETE", "page"): self._delete_page,
            ("POST", "stage"): lambda fields: {"pages": site.apply_stage(fields["name"])},
        }

    def replay(self) -> None:
        """Makes the journalled changes again."""
        if self._journal.exists():
            for line in self._journal.read_text("utf-8").splitlines():
                method, operation, fields = json.loads(line)
                self._changes[method, operation](fields)

    def handle(self, request: Request, wire: Wire) -> Coroutine[Any, Any, None]:
        """Answers one admin request."""
        return self._handle(request, wire)

    async def _handle(self, request: Request, wire: Wire) -> None:
        try:
            async with self._lock:
                status, result = 200, await self._perform(request)
        except (KeyError, TypeError, ValueError) as error:
            status, result = 400, {"error": f"{type(error).__name__}: {error}"}
        data = json.dumps(result).encode() + b"\n"
        wire.send(head(status, [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]) + data)

    async def _perform(self, request: Request) -> Json:
        operation, _, name = request.path.removeprefix("/-/").partition("/")
        fields: Json = {key: values[0] for key, values in parse_qs(request.query).items()}
        fields |= json.loads(request.body) if request.body else {}
        if name:
            fields["name"] = name
        key = request.method, operation
        if key in self._operations:
            return self._operations[key](fields)
        if key in self._changes:
            line = json.dumps([*key, fields])
            result = self._changes[key](fields)
            with self._journal.open("a", encoding="utf-8") as journal:
                journal.write(line + "\n")
            return result
        if key == ("POST", "down"):
            self._listener.refuse()
        elif key in {("POST", "up"), ("POST", "reset")}:
            await self._listener.accept()
            if operation == "reset":
                self._site.reset()
                self._journal.unlink(missing_ok=True)
        else:
            raise KeyError(f"{request.method} {request.path}")
        return {}

    def _health(self, _: Json) -> Json:
        pages = len(self._site.pages())
        up = self._listener.accepting
        return {"port": self._site.port, "pid": os.getpid(), "pages": pages, "stages": content.stages(), "up": up}

    def _read_log(self, fields: Json) -> Json:
        since = int(fields.get("since", 0))
        entries = self._log.entries(since)
        return {"requests": entries, "next": since + len(entries)}

    def _clear_log(self, _: Json) -> Json:
        self._log.clear()
        return {}

    def _set_page(self, fields: Json) -> Json:
        self._site.set_page(fields.pop("host"), fields.pop("path"), fields)
        return {}

    def _set_pages(self, fields: Json) -> Json:
        for page in fields["pages"]:
            self._set_page(page)
        return {}

    def _delete_page(self, fields: Json) -> Json:
        self._site.delete_page(fields["host"], fields["path"])
        return {}

    def _set_behaviour(self, fields: Json) -> Json:
        self._site.behaviours.set(fields)
        return {}

    def _remove_behaviour(self, fields: Json) -> Json:
        if fields:
            self._site.behaviours.remove([(fields.get("host", "*"), fields.get("path"), fields.get("prefix"))])
        else:
            self._site.behaviours.clear()
        return {}
