"""``python -m tests.site --port N --state DIR [--log FILE]``: serves the test site until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.site.admin import Admin
from tests.site.listener import Listener
from tests.site.request_log import RequestLog
from tests.site.site import Site

_FLUSH_SECONDS = 0.5
_HINT = """The test site listens on http://www.acme.test:{port}/ (a name for 127.0.0.1; see sources/demo.toml).
In another terminal: scrapy crawl demo
To change the site:  curl -X POST http://127.0.0.1:{admin}/-/stage/changed
As it was:           curl -X POST http://127.0.0.1:{admin}/-/reset
Ctrl-C ends it."""


def _read(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.site", description="Serves the test site on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=8765, help="port of the site; 0 takes a free one (default 8765)")
    parser.add_argument("--admin-port", type=int, help="default: the next port, or a free one with --port 0")
    parser.add_argument("--state", type=Path, default=Path("var/site"), help="folder of the log and the changes made")
    parser.add_argument("--log", type=Path, help="request log, JSON lines (default: requests.jsonl in the folder)")
    return parser.parse_args(given)


async def _serve(arguments: argparse.Namespace) -> None:
    state: Path = arguments.state
    state.mkdir(parents=True, exist_ok=True)
    log = RequestLog(arguments.log or state / "requests.jsonl")
    listener = Listener(arguments.port)
    default_admin_port = arguments.port + 1 if arguments.port else 0
    admin_listener = Listener(default_admin_port if arguments.admin_port is None else arguments.admin_port)
    site = Site(listener.port, log)
    admin = Admin(site, listener, log, state / "changes.jsonl")
    admin.replay()
    gc.freeze()
    await listener.start(site.handle)
    await admin_listener.start(admin.handle)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    print(json.dumps({"pid": os.getpid(), "port": listener.port, "admin": admin_listener.port}), flush=True)
    if sys.stdout.isatty():
        print(_HINT.format(port=listener.port, admin=admin_listener.port), file=sys.stderr)
    while not stopped.is_set():
        log.flush()
        try:
            await asyncio.wait_for(stopped.wait(), _FLUSH_SECONDS)
        except TimeoutError:
            continue
    listener.refuse()
    admin_listener.refuse()
    log.close()


def serve(given: Sequence[str]) -> None:
    """Serves a site with these arguments until it is stopped; OSError where it cannot listen."""
    asyncio.run(_serve(_read(given)))


if __name__ == "__main__":
    try:
        serve(sys.argv[1:])
    except OSError as failure:
        sys.exit(f"the test site cannot be served: {failure}")
