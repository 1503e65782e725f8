"""Which Scrapy settings a source may have, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from searchcrawl.sources.source_settings import find_refusal, find_refusal_on_command_line


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("SCHEDULER", "the URL table is the queue"),
        ("SCHEDULER_PRIORITY_QUEUE", "the URL table is the queue"),
        ("DUPEFILTER_CLASS", "the URL table is the queue"),
        ("REQUEST_FINGERPRINTER_CLASS", "the URL table is the queue"),
        ("JOBDIR", "the URL table is the queue"),
        ("DOWNLOAD_HANDLERS", "address guard"),
        ("TWISTED_DNS_RESOLVER", "fetch.private_networks"),
        ("DNS_RESOLVER", "fetch.resolve"),
        ("RETRY_ENABLED", "fetch.retries"),
        ("RETRY_TIMES", "fetch.retries"),
        ("REDIRECT_ENABLED", "fetch.max_redirects"),
        ("ROBOTSTXT_OBEY", "robots.obey"),
        ("COOKIES_ENABLED", "login"),
        ("TELNETCONSOLE_ENABLED", "runs code"),
        ("REMOTE_CONTROL_ENABLED", "runs code"),
        ("HTTPPROXY_ENABLED", "address guard"),
        ("HTTPCACHE_ENABLED", "cache of the project"),
        ("DOWNLOAD_DELAY", "fetch.delay_seconds"),
        ("CONCURRENT_REQUESTS", "fetch.concurrency"),
        ("CONCURRENT_REQUESTS_PER_DOMAIN", "fetch.host_concurrency"),
        ("CONCURRENT_ITEMS", "one thread"),
        ("DOWNLOAD_TIMEOUT", "fetch.timeout_seconds"),
        ("DOWNLOAD_MAXSIZE", "fetch.max_bytes"),
        ("USER_AGENT", "user_agent and contact"),
        ("TWISTED_REACTOR", "asyncio"),
        ("LOG_FILE", "logs in searchcrawl.toml"),
        ("FEEDS", "use [feeds]"),
        ("SPIDER_LOADER_CLASS", "source files"),
        ("DOWNLOADER_MIDDLEWARES_BASE", "DOWNLOADER_MIDDLEWARES"),
        ("mine", "upper case"),
        ("Mine", "upper case"),
        ("", "upper case"),
    ],
)
def test_why_refused_when_a_promise_rests_on_it_then_what_to_use_instead(name: str, key: str) -> None:
    assert key in (find_refusal(name, True) or "")


@pytest.mark.parametrize("name", ["MINE", "MEMUSAGE_LIMIT_MB", "SEARCHCRAWL_MIN_FREE_MB", "MAIL_HOST", "SHOP_BASE"])
def test_why_refused_when_no_promise_rests_on_it_then_nothing(name: str) -> None:
    assert find_refusal(name, 1) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"mine.Pipeline": 199}, None),
        ({"mine.Pipeline": 200}, "mine.Pipeline comes too late at 200"),
        ({"scrapy.pipelines.files.FilesPipeline": 1, "mine.Other": None}, None),
        ({"searchcrawl.commit.cache_pipeline.CachePipeline": 1}, "the place of searchcrawl.commit"),
        ({"mine.Pipeline": "first"}, "the place of mine.Pipeline must be a whole number"),
        (["mine.Pipeline"], "must be a table of components"),
    ],
)
def test_why_refused_when_components_are_added_then_ours_stay(value: Any, said: str | None) -> None:
    reason = find_refusal("ITEM_PIPELINES", value)

    assert (said is None and reason is None) or (said is not None and said in (reason or ""))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("LOG_FILE", "job.log", None),
        ("SEARCHCRAWL_INDEX_PATIENCE_SECONDS", "2", None),
        ("ITEM_PIPELINES", '{"mine.Early": 50}', None),
        ("ITEM_PIPELINES", '{"searchcrawl.commit.cache_pipeline.CachePipeline": null}', "is fixed"),
        ("EXTENSIONS", "mine.Extension", "must be a JSON object"),
        ("DOWNLOAD_DELAY", "3", "fetch.delay_seconds"),
    ],
)
def test_why_refused_on_command_line_when_asked_then_as_in_a_file_but_for_the_log(
    name: str, text: str, said: str | None
) -> None:
    reason = find_refusal_on_command_line(name, text)

    assert (said is None and reason is None) or (said is not None and said in (reason or ""))
