"""A browser for tests: it answers from a file, asks its wall as a real one does, and writes down what it was asked for.

A forked command (``tests.crawl_forks``) has it in place of the real one where ``FAKE_BROWSER_FOLDER`` names its folder.
This has ``pages.json``: an object by path (with its fragment), each the HTML of a page or an object with fields of ``RenderedPage``, or
with ``fails`` (a code), or with ``lost`` (the browser is gone); ``quits`` beside them: it cannot start. ``asked.txt``
gets a line for each page.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from searchcrawl.render import renderer
from searchcrawl.render.browser_request import DecodedAnswer
from searchcrawl.render.crawl_wall import Wall
from searchcrawl.render.rendered_page import BrowserUnavailable, RenderedPage, RenderFailed
from searchcrawl.rules.rendering import Part
from searchcrawl.sources.fetch_tables import Render
from tests.crawl_forks import BROWSER


class FakeBrowser:
    """Renders what ``pages.json`` says; a page that is not in it has no text."""

    def __init__(self, options: Render, wall: Wall, **settings: Any) -> None:
        self._wall = wall
        self._open = False

    async def start(self) -> None:
        if "quits" in read_pages():
            raise BrowserUnavailable("no browser here: install one")
        self._open = True

    async def close(self) -> None:
        self._open = False
        note("closed")

    async def render(
        self,
        url: str,
        *,
        answer: DecodedAnswer | None = None,
        trace: Path | None = None,
    ) -> RenderedPage:
        assert self._open
        note(url)
        if trace is not None:
            trace.write_text(f"trace of {url}", encoding="utf-8")
        refusal = self._wall.admit(url).check_navigation(url)
        if refusal is not None:
            raise RenderFailed(955, refusal)
        path, pages = _name(url), read_pages()
        known = pages.get(path, pages.get("/*", "<html><body></body></html>"))
        page = {"html": known} if isinstance(known, str) else dict(known)
        if "lost" in page:
            raise BrowserUnavailable("it cannot be started again")
        if "fails" in page:
            raise RenderFailed(page["fails"], "it took too long")
        sent = [(name, value) for name, value in page.get("headers", [["content-type", "text/html"]])]
        return RenderedPage(
            url=urljoin(url, page.get("url", url)),
            status=page.get("status", 200),
            headers=sent,
            html=page.get("html", ""),
            routes=tuple(urljoin(url, route) for route in page.get("routes", ())),
            redirects=tuple((urljoin(url, hop), status) for hop, status in page.get("redirects", ())),
            seconds=0.25,
            received_bytes=1000,
            refused=page.get("refused", {}),
            body=page.get("body", "").encode(),
            parts=tuple(Part(urljoin(url, part), *end) for part, *end in page.get("parts", ())),
            gave_up=page.get("gave_up"),
            moves=page.get("moves", False),
        )


def _name(url: str) -> str:
    """How ``pages.json`` names a page: by its path, and its fragment if it has any."""
    parts = urlsplit(url)
    return f"{parts.path}#{parts.fragment}" if parts.fragment else parts.path


def folder() -> Path:
    """Where its files are."""
    return Path(os.environ[BROWSER])


def read_pages() -> dict[str, Any]:
    """What the browser answers."""
    pages: dict[str, Any] = json.loads((folder() / "pages.json").read_text(encoding="utf-8"))
    return pages


def note(line: str) -> None:
    """Writes down what happened."""
    with (folder() / "asked.txt").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def install() -> None:
    """Has this process render with this browser."""
    renderer._BROWSER = "tests.fake_browser.FakeBrowser"
