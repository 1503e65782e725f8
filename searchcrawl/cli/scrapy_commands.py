"""Runs what needs Scrapy: its own commands, to which it tells of sources, and spiders that users write in Python."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from scrapy import Spider
from scrapy.cmdline import execute
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess, CrawlerProcessBase
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES, Settings, default_settings
from scrapy.utils.conf import arglist_to_dict, feed_process_params_from_cli
from scrapy.utils.log import configure_logging, log_scrapy_info

from searchcrawl.cli import commands
from searchcrawl.cli.settings_module import SHIPPED_SETTINGS, find_settings_module
from searchcrawl.environment import Variable
from searchcrawl.exceptions import NO_BROWSER, ConfigurationError, Exit
from searchcrawl.sources.files import SOURCES_DIR, has_source_file
from searchcrawl.sources.loading import find_project, is_source_name
from searchcrawl.sources.source_settings import list_shipped_defaults
from searchcrawl.spiders.spider_loader import describe_broken
from searchcrawl.user_code import ordinary_errors

#: These commands make a project or need none.
WITHOUT_PROJECT: Final = frozenset({"init", "quick"})
_ASYNCIO = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"


def execute_command(argv: list[str], name: str) -> None:
    """Runs a command as ``scrapy`` does, and exits with its code; raises ConfigurationError."""
    settings = load_settings(name)
    if editor := os.environ.get("EDITOR"):
        # Scrapy looks there only where it loads the settings itself.
        settings["EDITOR"] = editor
    execute(argv, settings)


def load_settings(command: str) -> Settings:
    """The settings of the project, or ours where a command works without a project; raises ConfigurationError."""
    module = os.environ.get(Variable.SETTINGS_MODULE)
    if module is None:
        try:
            root = find_project()
        except ConfigurationError:
            # The command itself reports the missing project, if it needs one.
            module = SHIPPED_SETTINGS
        else:
            module = SHIPPED_SETTINGS if command in WITHOUT_PROJECT else find_settings_module(root)
        # Scrapy asks this variable whether it is inside a project.
        os.environ[Variable.SETTINGS_MODULE] = module
    settings = Settings()
    _load_module(settings, module)
    if not settings["COMMANDS_MODULE"]:
        settings.set("COMMANDS_MODULE", commands.__name__, priority="project")
    settings.setdict(list_shipped_defaults(), priority="default")
    return settings


def _load_module(settings: Settings, module: str) -> None:
    try:
        with ordinary_errors():
            settings.setmodule(module, priority="project")
    except Exception as error:
        # It is the project's own, and may raise anything.
        raise ConfigurationError("settings module", "", describe_broken(module, error)) from error


def make_process(settings: Settings) -> CrawlerProcessBase:
    """The process that crawls with these settings, chosen as Scrapy's command line chooses it."""
    on_asyncio = settings["TWISTED_REACTOR"] == _ASYNCIO and not settings.getbool("FORCE_CRAWLER_PROCESS")
    if on_asyncio or not settings.getbool("TWISTED_REACTOR_ENABLED"):
        return AsyncCrawlerProcess(settings)
    return CrawlerProcess(settings)


def require_asyncio(process: CrawlerProcessBase | None) -> AsyncCrawlerProcess:
    """The process that crawls; raises ConfigurationError where it is of a reactor on which no source is crawled."""
    if not isinstance(process, AsyncCrawlerProcess):
        raise ConfigurationError("settings", "TWISTED_REACTOR", "must be the asyncio reactor")
    return process


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


def find_source_file(name: str) -> Path | None:
    """The file of a source, broken or not; None where there is none of this name."""
    try:
        root = find_project()
        there = is_source_name(name) and has_source_file(root, name)
    except ConfigurationError:
        return None
    return root / SOURCES_DIR / f"{name}.toml" if there else None
