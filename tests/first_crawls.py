"""Two small crawls of processes of their own, before the first command of a test: what statements they need is the same for all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Final

from tests import known_statements
from tests.site.client import write_project
from tests.threaded_site import QuietHandler

_PAGES: Final = {
    "/": '<title>First</title><p>Words <a href="/other">lead</a> to <a href="/gone">pages</a>.',
    "/other": '<title>Other</title><p>Some other words, and <a href="/">the first</a>.',
}


class _Pages(QuietHandler):
    def do_GET(self) -> None:
        body = _PAGES.get(self.path, "")
        self.answer(200 if body else 404, body)


def learn_statements(folder: Path, crawl: Callable[[], None]) -> None:
    """Has two processes ``crawl`` a project in ``folder`` once each, and learns their statements."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        write_project(folder, server.server_port)
        for _ in range(2):
            pid = os.fork()
            if pid == 0:
                _crawl_and_leave(folder, server, crawl)
            os.waitpid(pid, 0)
            known_statements.learn((folder / "statements").read_bytes(), folder)


def _crawl_and_leave(folder: Path, server: ThreadingHTTPServer, crawl: Callable[[], None]) -> None:
    """Ends the process; it serves the pages itself."""
    code = 1
    try:
        os.chdir(folder)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for target in range(3):
            os.dup2(nowhere, target)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            crawl()
        except SystemExit:
            (folder / "statements").write_bytes(known_statements.dump())
            code = 0
    finally:
        os._exit(code)
