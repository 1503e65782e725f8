"""Plain Scrapy on many hosts: a spider as its documentation has it for broad crawls, with title and text in a file of JSON lines.

python -m benchmarks.hosts_scrapy FILE_OF_URLS DELAY_SECONDS CONCURRENCY HOST_CONCURRENCY FEED
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy import Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Request, Response
from scrapy.linkextractors import LinkExtractor
from w3lib.html import remove_tags, remove_tags_with_content, replace_entities


class HostsSpider(Spider):
    """Follows the links of a page to its own host."""

    name = "hosts"

    def __init__(self, file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._file = Path(file)
        self._links = LinkExtractor()

    async def start(self) -> AsyncIterator[Request]:
        """The home pages; by default they would be requested again once they are linked."""
        for url in self._file.read_text(encoding="utf-8").split():
            yield Request(url)

    def parse(self, response: Response, **_: Any) -> Iterator[dict[str, Any] | Request]:
        """Title and text, and what it links to."""
        if not isinstance(response, HtmlResponse):
            return
        text = replace_entities(remove_tags(remove_tags_with_content(response.text, ("head", "script", "style"))))
        yield {"url": response.url, "title": response.css("title::text").get(""), "content": " ".join(text.split())}
        host = urlsplit(response.url).netloc
        for link in self._links.extract_links(response):
            if urlsplit(link.url).netloc == host:
                yield Request(link.url)


def main(file: str, delay_seconds: str, concurrency: str, host_concurrency: str, feed: str) -> None:
    """Crawls the hosts of the URLs in ``file``."""
    process = CrawlerProcess(
        {
            "CONCURRENT_REQUESTS": int(concurrency),
            "CONCURRENT_REQUESTS_PER_DOMAIN": 1 if float(delay_seconds) else int(host_concurrency),
            "DOWNLOAD_DELAY": float(delay_seconds),
            "DOWNLOAD_DELAY_JITTER": 0,
            "ROBOTSTXT_OBEY": True,
            # As the page on broad crawls advises.
            "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
            "REACTOR_THREADPOOL_MAXSIZE": 20,
            "COOKIES_ENABLED": False,
            "LOG_LEVEL": "INFO",
            "TELNETCONSOLE_ENABLED": False,
            "FEEDS": {feed: {"format": "jsonlines"}},
        }
    )
    process.crawl(HostsSpider, file=file)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
