"""The process that forks for each command of a test (``tests.crawl_forks``): it has everything imported."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from tests.crawl_forks import BROWSER, CLOCK, FETCH, LEASE, PAUSE, RETRIES, ROOT, SCRAPY, SLICES

#: What commands load late, beside the modules of searchcrawl: loaded before the fork, since it is the same for each.
_LATE: Final = (
    "chardet",
    "psycopg",
    "pydantic.v1",
    "queuelib",
    "pycld2",
    "rich.console",
    "rich.table",
    "scrapy.cmdline",
    "scrapy.contracts",
    "scrapy.core.scraper",
    "scrapy.dupefilters",
    "scrapy.extensions.closespider",
    "scrapy.extensions.corestats",
    "scrapy.extensions.logcount",
    "scrapy.extensions.logstats",
    "scrapy.extensions.memdebug",
    "scrapy.extensions.memusage",
    "scrapy.extensions.remote_control",
    "scrapy.extensions.spiderstate",
    "scrapy.extensions.telnet",
    "scrapy.extensions.throttle",
    "scrapy.shell",
    "scrapy.squeues",
    "scrapy.statscollectors",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "sqlite3",
    "twisted.internet.asyncioreactor",
)


def main() -> None:
    """Listens on the Unix socket ``sys.argv[1]`` until standard input ends; each connection brings an order, a line of JSON.

    For each it forks, and answers with the pid and, once the command has ended, with its exit code, a line each.
    """
    _load()
    # Ctrl-C is for the commands of a test, not for us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waiting:
        listener.bind(sys.argv[1])
        listener.listen()
        waiting.register(listener, selectors.EVENT_READ)
        waiting.register(sys.stdin, selectors.EVENT_READ)
        os.write(1, b"ready\n")
        order = _serve(listener, waiting)
    if order:
        _become(order)


def _serve(listener: socket.socket, waiting: selectors.BaseSelector) -> dict[str, Any]:
    """Serves until standard input ends; in a process that was forked it returns the order of that one."""
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                return {}
            if key.fileobj is not listener:
                _tell_end(key, waiting)
                continue
            client, _ = listener.accept()
            with client.makefile() as lines:
                order: dict[str, Any] = json.loads(lines.readline())
            pid = os.fork()
            if pid == 0:
                for other in [client, *_clients(waiting)]:
                    other.close()
                return order
            client.sendall(b"%d\n" % pid)
            waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, client))


def _clients(waiting: selectors.BaseSelector) -> list[socket.socket]:
    """Those who wait for the end of a command; closes the handles of these commands."""
    commands = [(key.fd, key.data[1]) for key in waiting.get_map().values() if key.data]
    for handle, _ in commands:
        os.close(handle)
    return [client for _, client in commands]


def _tell_end(key: selectors.SelectorKey, waiting: selectors.BaseSelector) -> None:
    pid, client = key.data
    waiting.unregister(key.fileobj)
    os.close(key.fd)
    _, status = os.waitpid(pid, 0)
    # Who asked may have gone.
    with client, contextlib.suppress(OSError):
        client.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _load() -> None:
    # Not above: each worker process of a command loads this module again.
    import chardet
    import scrapy.commands

    import searchcrawl

    for name in (*_LATE, "tests.fake_browser", "tests.fetch_crawl", *_product_modules(searchcrawl.__path__)):
        importlib.import_module(name)
    # It reads its models for the first text.
    chardet.detect("Straßen".encode("latin-1"))
    for module in pkgutil.iter_modules(scrapy.commands.__path__, "scrapy.commands."):
        importlib.import_module(module.name)
    _warm_up()
    # Its choice is the command's.
    assert "twisted.internet.reactor" not in sys.modules
    gc.collect()
    gc.freeze()


def _warm_up() -> None:
    """Reads a project and makes a store: what libraries note of tables, types and patterns is the same for each command."""
    from searchcrawl.queries.status import describe_status
    from searchcrawl.sources.loading import load_project, load_source
    from searchcrawl.store.engine.database import Database
    from searchcrawl.store.engine.sqlite_dialect import SqliteDialect
    from tests import known_statements
    from tests.first_crawls import learn_statements
    from tests.site.client import write_project

    known_statements.share(SqliteDialect)
    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        project = load_project(write_project(Path(folder), 80))
        with contextlib.closing(Database(project.database_url, project.root)) as database:
            describe_status(project, load_source(project, "demo"), database)
        learn_statements(Path(folder, "crawled"), lambda: _run(["crawl", "demo"]))


def _product_modules(path: Iterable[str]) -> list[str]:
    """All modules of searchcrawl."""
    found = (module.name for module in pkgutil.walk_packages(path, "searchcrawl."))
    return [name for name in found if not name.endswith("__main__")]


def _become(order: dict[str, Any]) -> None:
    """Goes on as the command that was ordered; ends the process."""
    from searchcrawl import failpoints

    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The tests may run under nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(order["environment"], PYTHONPATH=str(ROOT))
    # The folder of this process was chosen by the environment that it began with.
    tempfile.tempdir = None
    if mounts := order.get("mounts"):
        _enter(mounts)
    os.chdir(order["folder"])
    sys.path.insert(0, str(ROOT))
    time.tzset()
    given = os.open(order["input"], os.O_RDONLY)
    output, errors = (
        os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for name in ("output", "errors")
    )
    for source, target in ((given, 0), (output, 1), (errors, 2)):
        os.dup2(source, target)
    # It reads the environment once, when it is loaded.
    importlib.reload(failpoints)
    _set_clock(os.environ.pop(CLOCK, "0"))
    _set_pause(os.environ.pop(PAUSE, None))
    _set_slices(os.environ.pop(SLICES, None))
    _set_lease(os.environ.pop(LEASE, None))
    _set_browser()
    try:
        _run(order["args"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    _leave(code)


def _run(args: Sequence[str]) -> None:
    from scrapy.cmdline import execute

    from searchcrawl.cli import dispatch
    from tests import fetch_crawl

    if args == [FETCH]:
        fetch_crawl.main()
    elif args[:1] == [SCRAPY]:
        execute(["scrapy", *args[1:]])
    else:
        dispatch.main(["searchcrawl", *args])


def _leave(code: int) -> None:
    """Ends as Python does, but for the clearing of modules: after a fork it copies all their memory."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _set_clock(plan: str) -> None:
    """The machine's clock is so many seconds ahead (less than 0: behind) of what it is, later perhaps other ones.

    ``plan`` is like ``0,2:86400,4:0``: two seconds after the start the clock is set forth by a day, then back.
    """
    from twisted.internet.base import ReactorBase

    from searchcrawl import clock

    first, *jumps = plan.split(",")
    steps = [(0.0, int(first)), *((float(at), int(ahead)) for at, _, ahead in (jump.partition(":") for jump in jumps))]
    begun, now, time_ns, seconds = time.monotonic(), clock.now, time.time_ns, time.time

    def ahead() -> int:
        passed = time.monotonic() - begun
        return [ahead for at, ahead in steps if at <= passed][-1]

    clock.now = lambda: now() + timedelta(seconds=ahead())
    time.time_ns = lambda: time_ns() + ahead() * 1_000_000_000
    time.time = lambda: seconds() + ahead()
    # It keeps the function that it found first.
    ReactorBase.seconds = staticmethod(time.time)


def _set_slices(rows: str | None) -> None:
    from searchcrawl.commit import review
    from searchcrawl.frontier import replaying
    from searchcrawl.store.urls import review_table

    if rows is not None:
        review.ROWS_AT_START = review_table.PAGE_ROWS = replaying._MOST_COUNTED = int(rows)  # type: ignore[misc]


def _set_lease(seconds: str | None) -> None:
    from searchcrawl.extensions import watch_extension
    from searchcrawl.store.runs import lease

    if seconds is not None:
        lease.EXPIRY_MS = round(float(seconds) * 1000)  # type: ignore[misc]
        lease.BEAT_SECONDS = watch_extension.BEAT_SECONDS = float(seconds) / 6  # type: ignore[misc]


def _set_browser() -> None:
    from tests import fake_browser

    if BROWSER in os.environ:
        fake_browser.install()


def _set_pause(seconds: str | None) -> None:
    from searchcrawl.politeness import backoff
    from searchcrawl.store.runs import job_table

    unhurried = backoff.retry_pause_seconds
    if os.environ.pop(RETRIES, None) is None:
        # What a server asks for is waited for; beyond that a page that failed is tried again at once.
        vars(backoff)["retry_pause_seconds"] = lambda attempt, asked=None: unhurried(attempt, asked) if asked else 0.01
    if seconds is not None:
        vars(backoff)["_FIRST_PAUSE_SECONDS"] = float(seconds)
        vars(job_table)["_FIRST_PAUSE_MS"] = round(float(seconds) * 1000)


def _enter(mounts: str) -> None:
    """The mount namespace of that file (setns(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(mounts).open("rb") as file:
        if libc.setns(file.fileno(), 0x0002_0000) != 0:
            raise OSError(ctypes.get_errno(), "setns", mounts)


if __name__ == "__main__":
    main()
