"""A project of Scrapy that knows nothing of searchcrawl takes it in by three lines, and goes on to work (X-D15)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_project import environment
from tests.hostile_server import HostileServer, whole

pytestmark = pytest.mark.extended

#: Their files, by path; none of them names searchcrawl.
THEIRS: Final = {
    "scrapy.cfg": "[settings]\ndefault = shop.settings\n",
    "shop/__init__.py": "",
    "shop/settings.py": """
import os

BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
NEWSPIDER_MODULE = "shop.spiders"
ROBOTSTXT_OBEY = True
DOWNLOAD_DELAY = 0.01
CONCURRENT_REQUESTS_PER_DOMAIN = 1
COOKIES_ENABLED = False
USER_AGENT = "shop (+http://shop.test)"
DOWNLOADER_MIDDLEWARES = {"shop.middlewares.Signature": 543}
SPIDER_MIDDLEWARES = {"shop.middlewares.Counting": 543}
ITEM_PIPELINES = {"shop.pipelines.Prices": 300, "shop.pipelines.Known": 400}
EXTENSIONS = {"shop.extensions.Bell": 500}
FEEDS = {"offers.jsonl": {"format": "jsonlines", "overwrite": True}}
FEED_EXPORT_ENCODING = "utf-8"
LOG_LEVEL = "INFO"
SHOP_BASE = os.environ["SHOP_BASE"]
""",
    "shop/items.py": "import scrapy\n\n\nclass Offer(scrapy.Item):\n    name = scrapy.Field()\n    price = scrapy.Field()\n",
    "shop/middlewares.py": """
class Signature:
    def process_request(self, request, spider):
        request.headers["X-Signature"] = spider.name


class Counting:
    @classmethod
    def from_crawler(cls, crawler):
        middleware = cls()
        middleware.stats = crawler.stats
        return middleware

    async def process_spider_output(self, response, result):
        async for each in result:
            self.stats.inc_value("shop/results")
            yield each
""",
    "shop/pipelines.py": """
from scrapy.exceptions import DropItem


class Prices:
    def process_item(self, item, spider):
        item["price"] = float(item["price"])
        return item


class Known:
    def open_spider(self, spider):
        self.names = set()

    def process_item(self, item, spider):
        if item["name"] in self.names:
            raise DropItem("twice")
        self.names.add(item["name"])
        return item
""",
    "shop/extensions.py": """
from pathlib import Path

from scrapy import signals


class Bell:
    @classmethod
    def from_crawler(cls, crawler):
        crawler.signals.connect(cls.ring, signal=signals.spider_closed)
        return cls()

    @staticmethod
    def ring(spider, reason):
        with Path("bell.txt").open("a") as bell:
            bell.write(f"{spider.name} {reason}\\n")
""",
    "shop/spiders/__init__.py": "",
    "shop/spiders/offers.py": """
import scrapy

from shop.items import Offer


class Offers(scrapy.Spider):
    name = "offers"

    async def start(self):
        yield scrapy.Request(self.settings["SHOP_BASE"] + "/")

    def parse(self, response):
        \"\"\"Reads a page of offers.

        @url data:text/html,<li>a,1</li>
        @returns items 1 1
        \"\"\"
        for offer in response.css("li::text").getall():
            name, price = offer.split(",")
            yield Offer(name=name, price=price)
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)
""",
    "test_shop.py": """
import json
import subprocess
import sys
from pathlib import Path

from scrapy.http import HtmlResponse
from scrapy.utils.project import get_project_settings

from shop.spiders.offers import Offers


def scrapy(*words):
    return subprocess.run([sys.executable, "-m", "scrapy", *words], capture_output=True, text=True, timeout=100)


def test_parse():
    response = HtmlResponse("http://shop.test/", body=b"<li>a,1</li><li>b,2</li>")
    assert [offer["name"] for offer in Offers().parse(response)] == ["a", "b"]


def test_crawl():
    Path("bell.txt").unlink(missing_ok=True)
    ended = scrapy("crawl", "offers")
    assert ended.returncode == 0
    offers = [json.loads(line) for line in Path("offers.jsonl").read_text().splitlines()]
    assert offers == [{"name": "a", "price": 1.0}, {"name": "b", "price": 2.5}]
    assert Path("bell.txt").read_text() == "offers finished\\n"
    assert "'robotstxt/forbidden': 1" in ended.stderr
    assert "'shop/results': 5" in ended.stderr
    assert "'item_dropped_count': 1" in ended.stderr
    assert "DEBUG" not in ended.stderr


def test_commands():
    assert "offers" in scrapy("list").stdout.splitlines()
    assert "OK" in scrapy("check", "offers").stderr


def test_settings():
    assert get_project_settings()["USER_AGENT"] == "shop (+http://shop.test)"
""",
}
THREE_LINES: Final = """
ADDONS = {"searchcrawl.addon.SearchcrawlAddon": 0}
COMMANDS_MODULE = "searchcrawl.cli.commands"
SPIDER_LOADER_CLASS = "searchcrawl.spiders.spider_loader.SourceSpiderLoader"
"""
SOURCE: Final = """
[start]
urls = ["{base}/"]
[scope]
include_hosts = ["127.0.0.1"]
[fetch]
delay_seconds = 0
private_networks = ["127.0.0.1/32"]
"""


@pytest.fixture
def shop() -> Iterator[HostileServer]:
    with HostileServer() as server:
        server.answers = {
            "/robots.txt": whole(b"User-agent: *\nDisallow: /basket", "200 OK"),
            "/": whole(b"<title>Offers</title><li>a,1</li><a href=/more>more</a> <a href=/basket>basket</a>"),
            "/more": whole(b"<title>More barometers</title><li>b,2.5</li><li>a,1</li>"),
            "/sitemap.xml": whole(b"", "404 Not Found"),
        }
        yield server


def run(folder: Path, base: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    variables = environment(SHOP_BASE=base)
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=200, check=False)


def heads(server: HostileServer, header: str) -> set[str]:
    """The values of a header of the requests so far, which are forgotten."""
    lines = [line for request in server.requests for line in request.splitlines()]
    server.requests.clear()
    return {line.partition(": ")[2] for line in lines if line.lower().startswith(f"{header}: ")}


def test_project_when_it_takes_searchcrawl_in_by_three_lines_then_its_own_tests_pass_as_before_and_sources_are_crawled(
    shop: HostileServer, tmp_path: Path
) -> None:
    for name, text in THEIRS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), "utf-8")
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "test_shop.py")

    before = run(tmp_path, shop.url, *tests)
    signatures = heads(shop, "x-signature"), heads(shop, "user-agent")
    with (tmp_path / "shop" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(THREE_LINES)
    without_sources = run(tmp_path, shop.url, "-m", "scrapy", "list")
    (tmp_path / "searchcrawl.toml").write_text('contact = "webmaster@shop.test"\n', "utf-8")
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "docs.toml").write_text(SOURCE.format(base=shop.url), "utf-8")
    after = run(tmp_path, shop.url, *tests)
    heads(shop, "x-signature")
    crawled = run(tmp_path, shop.url, "-m", "scrapy", "crawl", "docs")

    assert [done.returncode for done in (before, after)] == [0, 0], before.stdout + after.stdout
    assert (without_sources.stdout, without_sources.stderr) == ("offers\n", "")
    assert signatures[0] == {"offers"}
    assert crawled.returncode == 0, crawled.stderr
    # Their middleware and pipelines are none of a source; their extension is one of the process.
    assert (heads(shop, "x-signature"), (tmp_path / "bell.txt").read_text().splitlines()[-1]) == (
        set(),
        "docs finished",
    )
    log = (tmp_path / "var" / "log" / "docs.log").read_text("utf-8")
    assert "ERROR" not in log
    assert (
        "settings of the project that are for its spiders in Python, not for sources: CONCURRENT_REQUESTS_PER_DOMAIN, "
        "DOWNLOADER_MIDDLEWARES, DOWNLOAD_DELAY, FEEDS, FEED_EXPORT_ENCODING, ITEM_PIPELINES, SPIDER_MIDDLEWARES, USER_AGENT\n"
    ) in log
    listed = run(tmp_path, shop.url, "-m", "scrapy", "list")
    found = run(tmp_path, shop.url, "-m", "searchcrawl", "search", "barometers", "--json")
    assert listed.stdout == "docs\noffers\n"
    assert [hit["title"] for hit in json.loads(found.stdout)["hits"]] == ["More barometers"]
