"""What the process of a member runs (``searchcrawl.members``)."""

from __future__ import annotations

import logging
import os
import socket
from typing import Final

from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings

from searchcrawl.members.link import Link, LinkedLog, LinkedShutdown
from searchcrawl.members.messages import Setup
from searchcrawl.memory import return_large_blocks
from searchcrawl.messages import set_levels
from searchcrawl.run import Run
from searchcrawl.sources.loading import build_boundary
from searchcrawl.spiders.running import run_spider
from searchcrawl.spiders.spider_loader import find_spider_class
from searchcrawl.store.engine.database import Database
from searchcrawl.worker_process import follow_owner

_ENDED: Final = 0


def serve_run(connection: socket.socket, setup: Setup) -> None:
    """Visits pages until the process of the run has no more, or has ended."""
    follow_owner()
    return_large_blocks()
    os.umask(int(setup.project.umask, 8))
    link = Link(connection, setup, lost=lambda: os._exit(_ENDED))
    _log_to(link)
    settings = Settings()
    for name, (value, priority) in setup.settings.items():
        settings.set(name, value, priority=priority)
    run = _build_run(link, patience_seconds=settings.getfloat("SEARCHCRAWL_STORE_PATIENCE_SECONDS"))
    values = {"name": setup.source.name, "source": setup.source, "project": setup.project, "member": link}
    spider = type("MemberSpider", (find_spider_class(setup.project, setup.source),), values | {"__module__": __name__})
    ran = run_spider(AsyncCrawlerProcess(settings), spider, signals=False, run=run)
    if ran.error is not None:
        run.shutdown.fail(ran.error if isinstance(ran.error, Exception) else RuntimeError(repr(ran.error)))
    run.database.close()


def _build_run(link: Link, *, patience_seconds: float) -> Run:
    setup = link.setup
    run = Run(
        project=setup.project,
        source=setup.source,
        database=Database(setup.project.database_url, setup.project.root, patience_seconds=patience_seconds),
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


def _log_to(link: Link) -> None:
    """Has the records of this process written where those of the run are."""
    logging.getLogger().handlers[:] = [LinkedLog(link)]
    set_levels(link.setup.log_level)
    # What it says when a crawl begins and ends is said once.
    logging.getLogger("scrapy").setLevel(max(link.setup.log_level, logging.WARNING))
