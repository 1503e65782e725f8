"""What the process of a member runs (``searchcrawl.members``)."""

from __future__ import annotations

import logging
import os
import socket
from contextlib import suppress
from typing import Final

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings

from searchcrawl.members.channel import send_blocking
from searchcrawl.members.link import LinkedLog, LinkedShutdown, MemberLink, make_portable
from searchcrawl.members.messages import Closed, Failed, Setup
from searchcrawl.messages import set_levels
from searchcrawl.run import Run, return_memory
from searchcrawl.sources.loading import build_boundary
from searchcrawl.sources.secrets import hide, redact
from searchcrawl.spiders.running import run_spider
from searchcrawl.spiders.spider_loader import build_spider_class
from searchcrawl.store.opening import open_store
from searchcrawl.store.states import EndReason
from searchcrawl.terminal import guard_logs, guard_streams
from searchcrawl.worker_process import follow_owner

_ENDED: Final = 0


def serve_run(connection: socket.socket, files: socket.socket, setup: Setup) -> None:
    """Visits pages until the process of the run has no more, or has ended; the sockets are those of a Channel."""
    for value in setup.hidden:
        hide(value)
    guard_streams(alter_errors=redact)
    guard_logs(alter=redact)
    follow_owner()
    return_memory()
    os.umask(int(setup.project.umask, 8))
    spare = connection.dup()
    link = MemberLink(connection, files, setup, lost=lambda: os._exit(_ENDED))
    try:
        failure = _visit(link)
    except Exception as error:  # noqa: BLE001  # whatever it is, the run has to know
        failure = error
    if failure is not None:
        # The loop has ended, or did not begin.
        with suppress(OSError):
            send_blocking(spare, Failed(make_portable(failure)))
            send_blocking(spare, Closed(EndReason.STOPPED, {}, {}, {}))
    # Threads of native libraries may still run while an interpreter ends, and crash.
    os._exit(_ENDED)


def _visit(link: MemberLink) -> BaseException | None:
    """Runs the reactor; returns the error with which the crawl did not begin."""
    setup, settings = link.setup, Settings()
    for name, (value, priority) in setup.settings.items():
        settings.set(name, value, priority=priority)
    run = _build_run(link, patience_seconds=settings.getfloat("SEARCHCRAWL_STORE_PATIENCE_SECONDS"))
    spider = build_spider_class(setup.project, setup.source, member=link)
    process = AsyncCrawlerProcess(settings)
    # After Scrapy has set up its own.
    _log_to(link)
    ran = run_spider(process, spider, signals=False, run=run)
    run.database.close()
    return ran.error


def _build_run(link: MemberLink, *, patience_seconds: float) -> Run:
    setup = link.setup
    run = Run(
        project=setup.project,
        source=setup.source,
        database=open_store(setup.project, patience_seconds=patience_seconds),
        boundary=build_boundary(setup.source),
        source_id=setup.source_id,
        lease=setup.lease,
        row=setup.row,
        fingerprint=setup.fingerprint,
        forced=setup.forced,
        shutdown=LinkedShutdown(link),
    )
    run.rewriting.open(setup.source.name)
    return run


def _log_to(link: MemberLink) -> None:
    """Has the records of this process written where those of the run are."""
    logging.getLogger().handlers[:] = [LinkedLog(link)]
    set_levels(link.setup.log_level)
    # What it says when a crawl begins and ends is said once.
    logging.getLogger("scrapy").setLevel(max(link.setup.log_level, logging.WARNING))
