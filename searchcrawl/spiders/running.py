"""Runs a spider to its end, with the interpreter set up for it."""

from __future__ import annotations

import gc
import sys
from typing import Any, Final, NamedTuple

from scrapy import Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler

from searchcrawl.user_code import ordinary_errors

#: Native calls of a page let another thread run in between. This is the longest time that the other thread then runs
#: before the reactor can go on.
_SWITCH_SECONDS: Final = 0.001
#: A page leaves few cycles of objects behind.
_COLLECTED: Final = (50_000, 20, 50)


class Ran(NamedTuple):
    """The crawler of a spider that was run, and the error with which it did not begin."""

    crawler: Crawler
    error: BaseException | None


def run_spider(process: AsyncCrawlerProcess, spider: type[Spider], *, signals: bool = True, **arguments: Any) -> Ran:
    """Runs the reactor until the spider is closed, so only once in a process; with ``signals`` these end it."""
    # Everything loaded by now lives as long as the process: the garbage collector need not look at it.
    gc.disable()
    crawler = process.create_crawler(spider)
    # Components of users that end the process when they are made fail as others do: Scrapy then ends its crawl.
    for name in ("_create_spider", "_apply_settings", "_create_engine"):
        setattr(crawler, name, ordinary_errors()(getattr(crawler, name)))
    task = process.crawl(crawler, **arguments)
    gc.freeze()
    gc.set_threshold(*_COLLECTED)
    gc.enable()
    sys.setswitchinterval(_SWITCH_SECONDS)
    process.start(install_signal_handlers=signals)
    return Ran(crawler, task.exception() if task.done() and not task.cancelled() else None)
