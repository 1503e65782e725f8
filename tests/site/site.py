"""The site itself: pages by host and path, stages, behaviours, and the answer to each request."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import unquote

from tests.site import content, hostile
from tests.site.behaviour import Behaviour, Behaviours
from tests.site.generator import generate
from tests.site.pages import Page, answer, etag_of
from tests.site.request_log import RequestLog
from tests.site.wire import Request, Wire

_MISSING: Final = Page(
    body=b"<!DOCTYPE html>\n<html lang='en'><head><title>Not found</title></head><body>No such page.</body></html>\n",
    status=404,
)
_NO_ROBOTS: Final = Page(body=b"none\n", content_type="text/plain", status=404)
_FIRST_CHANGE: Final = datetime(2025, 6, 2, 9, 0, tzinfo=UTC)


class Site:
    """Answers requests for all virtual hosts on one port, and can be changed between them."""

    def __init__(self, port: int, log: RequestLog) -> None:
        self.port = port
        self.behaviours = Behaviours()
        self._log = log
        self._pages: dict[content.Key, Page] = {}
        self._changes = 0
        self.reset()

    def reset(self) -> None:
        """Back to stage ``base``; the log is kept."""
        self._pages = content.read_stage("base", self.port)
        self._changes = 0
        self.behaviours.clear()

    def apply_stage(self, name: str) -> int:
        """Lays a stage over the pages and returns how many it touches; raises KeyError for an unknown one."""
        if name not in content.stages():
            raise KeyError(name)
        pages = content.read_stage(name, self.port)
        self._pages.update(pages)
        return len(pages)

    def set_page(self, host: str, path: str, fields: Mapping[str, Any]) -> None:
        """Sets a page or changes fields of it; raises TypeError for unknown fields.

        ``body`` (text) or ``body_base64``, ``content_type``, ``status``, ``headers``, ``etag``, ``last_modified``,
        ``encoding`` ("gzip"), ``honours_conditions``. A new body gets validators of its own, unless these are given
        (null: none); each change is dated an hour after the one before.
        """
        values = dict(fields)
        page = self._pages.get((host, path), Page(body=b""))
        if page.status != 200 and not {"body", "body_base64"}.isdisjoint(values):
            page = Page(body=b"")
        if "body_base64" in values:
            values["body"] = base64.b64decode(values.pop("body_base64"))
        elif "body" in values:
            values["body"] = str(values["body"]).encode()
        if "headers" in values:
            values["headers"] = tuple(values["headers"].items())
        self._changes += 1
        if "body" in values:
            modified = _FIRST_CHANGE + timedelta(hours=self._changes)
            values.setdefault("etag", etag_of(values["body"]))
            values.setdefault("last_modified", format_datetime(modified, usegmt=True))
        self._pages[host, path] = replace(page, **values)

    def delete_page(self, host: str, path: str) -> None:
        """Makes a path answer 404, also a generated one."""
        self._pages[host, path] = _MISSING

    def pages(self) -> list[dict[str, Any]]:
        """What is served: host, path, status, type, size and validators of each page, generated ones left out."""
        return [
            {
                "host": host,
                "path": path,
                "status": page.status,
                "content_type": page.content_type,
                "bytes": len(page.body),
                "etag": page.etag,
                "last_modified": page.last_modified,
            }
            for (host, path), page in sorted(self._pages.items())
        ]

    def handle(self, request: Request, wire: Wire) -> Coroutine[Any, Any, None] | None:
        """Answers a request; what takes time is returned as a coroutine."""
        entry = self._log.begin(request)
        found = self._find(request)
        behaviour = self.behaviours.take(request.host, request.path, found not in (_MISSING, _NO_ROBOTS))
        delay_seconds = behaviour.delay_seconds if behaviour is not None else 0.0
        if isinstance(found, tuple):
            found, pause_seconds = found
            delay_seconds += pause_seconds
        if behaviour is not None:
            found = _changed(found, behaviour)
        if delay_seconds or not isinstance(found, Page):
            return self._answer_later(request, wire, found, delay_seconds, entry)
        self._send(found, request, wire)
        self._log.end(entry, wire)
        return None

    def _find(self, request: Request) -> Page | hostile.Fault | tuple[Page, float]:
        host, path = request.host, request.path
        page = self._pages.get((host, f"{path}?{request.query}")) if request.query else None
        page = page or self._pages.get((host, path)) or self._pages.get((host, unquote(path)))
        if page is not None:
            return page
        if host.startswith("gen"):
            made = generate(host, path)
            if made is not None:
                return made.page, made.delay_seconds
        if host == hostile.HOST:
            found = hostile.respond(request)
            if found is not None:
                return found
        return _NO_ROBOTS if path == "/robots.txt" else _MISSING

    @staticmethod
    def _send(page: Page, request: Request, wire: Wire) -> None:
        status, data = answer(page, request)
        wire.send(data)
        wire.status = status

    async def _answer_later(
        self,
        request: Request,
        wire: Wire,
        found: Page | hostile.Fault,
        delay_seconds: float,
        entry: dict[str, Any],
    ) -> None:
        try:
            await asyncio.sleep(delay_seconds)
            if isinstance(found, Page):
                self._send(found, request, wire)
            else:
                await hostile.act(found, wire)
        finally:
            self._log.end(entry, wire)


def _changed(found: Page | hostile.Fault, behaviour: Behaviour) -> Page | hostile.Fault:
    """What ``found`` becomes under a rule."""
    if behaviour.mode is not None:
        return hostile.fault(behaviour.mode)
    headers = tuple(behaviour.headers.items())
    if behaviour.status is not None:
        kind = None if any(name.lower() == "content-type" for name, _ in headers) else "text/plain"
        return Page(body=behaviour.text().encode(), content_type=kind, status=behaviour.status, headers=headers)
    if isinstance(found, Page) and headers:
        names = {name.lower() for name, _ in headers}
        kept = tuple(item for item in found.headers if item[0].lower() not in names)
        return replace(found, headers=kept + headers)
    return found
