"""Runs spiders that users write in Python, beside the sources, as Scrapy's own command does."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from scrapy import Spider
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess, CrawlerProcessBase
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES, Settings, default_settings
from scrapy.utils.conf import arglist_to_dict, feed_process_params_from_cli
from scrapy.utils.log import configure_logging, log_scrapy_info

from searchcrawl.exit_codes import NO_BROWSER, Exit

_ASYNCIO = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


def make_process(settings: Settings) -> CrawlerProcessBase:
    """The process that crawls with these settings, chosen as Scrapy's command line chooses it."""
    on_asyncio = settings["TWISTED_REACTOR"] == _ASYNCIO and not settings.getbool("FORCE_CRAWLER_PROCESS")
    if on_asyncio or not settings.getbool("TWISTED_REACTOR_ENABLED"):
        return AsyncCrawlerProcess(settings)
    return CrawlerProcess(settings)


def restore_log(settings: Settings, changed: Iterable[str]) -> None:
    """Opens the log of Scrapy where nobody turned it off but our command, which ``changed`` these settings for sources."""
    command = SETTINGS_PRIORITIES["command"]
    for name in changed:
        if settings.getpriority(name) == command:
            settings.set(name, getattr(default_settings, name), priority=command)
    configure_logging(settings)
    log_scrapy_info(settings)


def run_python_spider(process: CrawlerProcessBase, spider: type[Spider], opts: argparse.Namespace) -> int:
    """Runs the reactor until the spider is closed; raises Scrapy's UsageError for options that it does not understand."""
    try:
        arguments = arglist_to_dict(opts.arguments)
    except ValueError:
        raise UsageError("-a: must be NAME=VALUE") from None
    if opts.output or opts.overwrite_output:
        feeds = feed_process_params_from_cli(
            process.settings, opts.output, overwrite_output=opts.overwrite_output or None
        )
        process.settings.set("FEEDS", feeds, priority="cmdline")
    crawler = process.create_crawler(spider)
    process.crawl(crawler, **arguments)
    process.start()
    if crawler.stats is not None and crawler.stats.get_value("finish_reason") == NO_BROWSER:
        return Exit.CONFIGURATION
    return Exit.DIFFERENT if process.bootstrap_failed else Exit.DONE
