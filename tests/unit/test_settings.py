"""The settings of a project: what sources are crawled with, and what spiders in Python are."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from searchcrawl import settings as shipped
from searchcrawl.addon import SearchcrawlAddon
from searchcrawl.run import Run
from searchcrawl.sources.source_settings import FIXED, find_obstacle
from tests.filled_store import FilledStore

PAGES = "searchcrawl.render.playwright_handler.PlaywrightSpiderHandler"
THREE_LINES = ("ADDONS", "COMMANDS_MODULE", "SPIDER_LOADER_CLASS")
THEIRS = {
    "TELNETCONSOLE_ENABLED": True,
    "RETRY_ENABLED": True,
    "DOWNLOAD_DELAY": 3,
    "DOWNLOAD_HANDLERS": {"http": "theirs.Handler", "gopher": "theirs.Gopher"},
    "ITEM_PIPELINES": {"theirs.Pipeline": 300},
    "DOWNLOADER_MIDDLEWARES": {"theirs.Middleware": 543},
    "JOBDIR": "jobs",
}


def applied(spider: object, **of_project: object) -> Settings:
    """The settings of a crawl, after the add-on."""
    settings = Settings()
    settings.setmodule(shipped, priority="project")
    settings.setdict(of_project, priority="project")
    crawler: Any = SimpleNamespace(settings=settings, spider=spider)
    SearchcrawlAddon(crawler).update_settings(settings)
    return settings


@pytest.fixture
def run(tmp_path: Path, store_url: str) -> Any:
    store = FilledStore(tmp_path, store_url)
    yield store.run
    store.close()


class OwnSpider(Spider):
    name = "own"


@pytest.mark.parametrize("of_project", [{}, THEIRS], ids=["ours", "theirs"])
def test_source_when_crawled_then_no_setting_of_the_project_breaks_a_promise(run: Run, of_project: Any) -> None:
    settings = applied(SimpleNamespace(run=run, name="demo"), **of_project)

    assert {name: settings[name] for name in FIXED} == FIXED
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    assert {scheme for scheme, handler in handlers.items() if handler is not None} == {"http", "https"}
    assert {handlers["http"], handlers["https"]} == {"searchcrawl.http.late_handler.LateHandler"}
    assert not [name for name in ("ITEM_PIPELINES", "DOWNLOADER_MIDDLEWARES") if "theirs" in str(dict(settings[name]))]
    assert settings.getint("MEMUSAGE_LIMIT_MB") == 2048


def test_source_when_the_project_has_settings_that_it_leaves_out_then_its_log_names_them(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    applied(SimpleNamespace(run=run, name="demo"), **THEIRS, MINE=1, MEMUSAGE_LIMIT_MB=100)

    assert f"for its spiders in Python, not for sources: {', '.join(sorted(THEIRS))}\n" in caplog.text


def test_python_spider_when_crawled_then_the_defaults_of_scrapy_but_nothing_that_puts_the_machine_at_risk() -> None:
    plain, settings = Settings(), applied(OwnSpider())

    differing = {name for name in plain if dict_of(settings[name]) != dict_of(plain[name])}
    assert differing == {
        "ADDONS", "BOT_NAME", "COMMANDS_MODULE", "SPIDER_LOADER_CLASS", "ROBOTSTXT_OBEY", "EXTENSIONS_BASE",
        "DOWNLOAD_HANDLERS", "TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED",
    }  # fmt: skip
    assert settings.getbool("ROBOTSTXT_OBEY")
    assert not settings.getbool("TELNETCONSOLE_ENABLED")
    assert not settings.getbool("REMOTE_CONTROL_ENABLED")
    assert dict(settings["DOWNLOAD_HANDLERS"]) == {"file": None, "http": PAGES, "https": PAGES}


def dict_of(value: object) -> object:
    return dict(value) if hasattr(value, "keys") else value  # type: ignore[call-overload]  # settings are mappings


def test_python_spider_when_its_project_says_otherwise_then_that_counts() -> None:
    settings = applied(OwnSpider(), **THEIRS, SEARCHCRAWL_GUARD=False)

    assert {name: dict_of(settings[name]) for name in THEIRS} == {
        **THEIRS,
        "DOWNLOAD_HANDLERS": {"file": None, "http": "theirs.Handler", "https": PAGES, "gopher": "theirs.Gopher"},
    }


def test_python_spider_when_the_guard_is_on_then_our_handler_and_no_other_way_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = applied(OwnSpider(), SEARCHCRAWL_GUARD=True)
    other = applied(OwnSpider(), SEARCHCRAWL_GUARD=True, DOWNLOAD_HANDLERS={"ftp": "theirs.Ftp"})

    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    assert {scheme for scheme, handler in handlers.items() if handler is not None} == {"http", "https", "data"}
    assert [handlers[scheme] for scheme in ("http", "https")] == [PAGES, PAGES]
    assert other["DOWNLOAD_HANDLERS"]["ftp"] == "theirs.Ftp"
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "own: the address guard does not cover its handler of ftp"
    ]


def test_python_spider_when_the_guard_is_on_and_it_names_scrapy_playwright_then_that_is_behind_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    named = {"https": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"}

    guarded = applied(OwnSpider(), SEARCHCRAWL_GUARD=True, DOWNLOAD_HANDLERS=named)
    plain = applied(OwnSpider(), DOWNLOAD_HANDLERS=named)

    assert guarded["DOWNLOAD_HANDLERS"]["https"] == PAGES
    assert plain["DOWNLOAD_HANDLERS"]["https"] == named["https"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_settings_when_a_project_has_three_lines_of_ours_then_sources_can_be_crawled() -> None:
    settings = Settings({name: getattr(shipped, name) for name in THREE_LINES})

    SearchcrawlAddon.update_pre_crawler_settings(settings)

    assert find_obstacle(settings) is None
    assert settings.getint("SEARCHCRAWL_STALL_SECONDS") == shipped.SEARCHCRAWL_STALL_SECONDS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ADDONS", {}),
        ("ADDONS", {"searchcrawl.addon.SearchcrawlAddon": None}),
        ("TWISTED_REACTOR", "twisted.internet.selectreactor.SelectReactor"),
        ("TWISTED_REACTOR_ENABLED", False),
    ],
)
def test_settings_when_no_source_could_be_crawled_then_the_one_that_is_in_the_way_is_named(
    name: str, value: object
) -> None:
    settings = Settings({**{name: getattr(shipped, name) for name in THREE_LINES}, name: value})

    obstacle = find_obstacle(settings)

    assert obstacle is not None
    assert obstacle[0] == name
