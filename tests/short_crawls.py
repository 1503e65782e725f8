"""``python -m tests.short_crawls FOLDER NAME…``: crawls sources of a project one after another, in one process.

A process start costs more than such a run; spider, settings and components are those of every crawl.
"""

from __future__ import annotations

import os
import sys

from scrapy.crawler import AsyncCrawlerRunner
from scrapy.settings import Settings
from scrapy.utils.defer import deferred_f_from_coro_f
from scrapy.utils.reactor import install_reactor

from searchcrawl import settings as shipped
from searchcrawl.spiders.spider_loader import SourceSpiderLoader


async def crawl_all(_reactor: object, names: list[str]) -> None:
    """One run of each source."""
    settings = Settings()
    settings.setmodule(shipped, priority="project")
    loader = SourceSpiderLoader.from_settings(settings)
    runner = AsyncCrawlerRunner(settings)
    for name in names:
        await runner.crawl(loader.load(name))


def main() -> None:
    """Ends with 0 where each run was begun and ended; what came of them is in the store."""
    folder, *names = sys.argv[1:]
    os.chdir(folder)
    install_reactor(shipped.TWISTED_REACTOR)
    from twisted.internet.task import react

    react(deferred_f_from_coro_f(crawl_all), [names])


if __name__ == "__main__":
    main()
