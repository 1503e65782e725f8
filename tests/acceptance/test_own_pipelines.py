"""Classes of users that see each document or each request: what they drop, refuse, change or fail at (K4, X-S11).

What they print is no part of what a command answers (L1).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project, use_settings_module
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

NAMES: Final = ("good", "dropped", "broken", "nothing", "other", "late")
MINE: Final = """
import gc

from scrapy import signals
from scrapy.exceptions import DropItem

class Early:
    def process_item(self, item):
        if item.url.endswith("/dropped.html"):
            raise DropItem("not wanted")
        if item.url.endswith("/broken.html"):
            raise RuntimeError("cannot cope")
        if item.url.endswith("/nothing.html"):
            return None
        return {"other": 1} if item.url.endswith("/other.html") else item

class Shouting:
    async def process_item(self, item, spider):
        assert spider.name == "demo"
        # While all is loaded it is not collected.
        assert gc.isenabled()
        item.title = item.title.upper()
        item.values["price"] = ["12.5"]
        return item

class Failing:
    def process_item(self, item):
        if item.url.endswith(".html"):
            raise RuntimeError("the body: " + item.body.decode())
        return item

class CannotBegin:
    def open_spider(self):
        raise SystemExit("no licence")

class Leaving:
    def __init__(self):
        raise SystemExit(0)

class CannotEnd:
    def process_item(self, item):
        return item

    def close_spider(self):
        raise SystemExit("no end")

class Bell:
    @classmethod
    def from_crawler(cls, crawler):
        for name in ("item_dropped", "item_error", "item_scraped", "spider_closed"):
            crawler.signals.connect(getattr(cls, "note_" + name), signal=getattr(signals, name))
        return cls()

    @staticmethod
    def note_item_dropped(item, exception, spider):
        ring("dropped", item.url, exception)

    @staticmethod
    def note_item_error(item, failure, spider):
        ring("error", item.url, repr(failure.value))

    @staticmethod
    def note_item_scraped(item, spider):
        ring("ended", item.claim.url, item.code)

    @staticmethod
    def note_spider_closed(spider, reason):
        ring("closed", spider.name, reason)

def ring(*words):
    with open("bell.txt", "a") as bell:
        print(*words, file=bell)

class Service:
    def process(self, document):
        if document.url.endswith("/late.html"):
            return None
        document.text = document.text.upper()
        return document

class Twice:
    def process(self, document):
        document.title += ", read"
        document.text += " more"
        return document

class Broken:
    def __init__(self):
        raise RuntimeError("no service")

    def process(self, document):
        return document

class Unable:
    def __init__(self):
        raise LookupError("no model")

    def convert(self, body, *, url, mimetype): ...
"""
CONVERTERS: Final = {"converters": {"application/x-note": "mine:Unable"}}
UNABLE: Final = 'converters."application/x-note": cannot be made: LookupError: no model (got "mine:Unable")'


def prepared(site: SiteProcess, folder: Path, host: str, names: tuple[str, ...] = NAMES, **keys: Any) -> CrawlProject:
    """A project whose pages each link to one of their own."""
    pages(site, host, **{name: page(f"page {name}", f"/{name}-below.html") for name in names})
    site.set_pages(host, {f"/{name}-below.html": page(f"below {name}") for name in names})
    (folder / "mine.py").write_text(MINE, "utf-8")
    return new_project(folder, site, **source(site, host), **keys)


def test_crawl_when_plugins_change_drop_or_fail_then_each_document_gets_what_is_its_own(
    site: SiteProcess, tmp_path: Path
) -> None:
    host = "pipelines.acme.test"
    settings = {
        "ITEM_PIPELINES": {"mine.Early": 50, "mine.Shouting": 60, "mine.CannotEnd": 199},
        "EXTENSIONS": {"mine.Bell": 1},
    }
    attributes = {"meta:price": "price", "types": {"price": "number"}}
    project = prepared(site, tmp_path, host, settings=settings, document_service="mine:Service", attributes=attributes)

    ended = project.crawl()

    rows = project.rows()
    found = {name: (rows[f"{host}/{name}.html"]["code"], rows[f"{host}/{name}.html"]["rule"]) for name in NAMES}
    assert ended.exit_code == 0
    assert found == {
        "good": (200, None),
        "dropped": (952, "settings.ITEM_PIPELINES: mine.Early: not wanted"),
        "broken": (903, None),
        "nothing": (903, None),
        "other": (903, None),
        "late": (952, "document_service: mine:Service"),
    }
    assert {name: rows[f"{host}/{name}.html"]["error"] for name in ("broken", "nothing", "other")} == {
        "broken": "pipeline mine.Early: RuntimeError: cannot cope",
        "nothing": "pipeline mine.Early: TypeError: returned None, not the document",
        "other": "pipeline mine.Early: TypeError: returned a dict, not the document",
    }
    # Links of what is kept out are followed, those of what was lost are not.
    assert [name for name in NAMES if f"{host}/{name}-below.html" in rows] == ["good", "dropped", "late"]
    rung = (tmp_path / "bell.txt").read_text("utf-8").replace(site.url(host, "/"), "/").splitlines()
    assert {
        "dropped /dropped.html not wanted", "error /broken.html RuntimeError('cannot cope')", "ended /good.html 200",
        "ended /dropped.html 952", "ended /broken.html 903", "closed demo finished",
    } <= {*rung}  # fmt: skip
    assert find_good(project) == ("PAGE GOOD", "/GOOD-BEL", 12.5)
    assert "pipeline mine.CannotEnd failed to close: SystemExit('no end')" in project.log()
    explained = project.command("explain", site.url(host, "/dropped.html"), "--json").stdout
    assert '"rule":"mine.Early: not wanted","file":"sources/demo.toml","key":"settings.ITEM_PIPELINES"' in explained


def find_good(project: CrawlProject) -> tuple[Any, ...]:
    """Title, beginning of the text, and price of the good page, as a search shows them."""
    hits = project.ask("search", "page good")["hits"]
    hit = next(hit for hit in hits if hit["url"].endswith("/good.html"))
    return hit["title"], hit["snippet"][:9], hit["attributes"]["price"]


def test_apply_when_documents_were_changed_by_plugins_then_none_is_changed_once_more(
    site: SiteProcess, tmp_path: Path
) -> None:
    host, keys = "applied.acme.test", {"document_service": "mine:Twice"}
    project = prepared(site, tmp_path, host, ("good",), **keys)
    project.crawl()
    project.edit(**source(site, host), **keys, groups=["a"])
    plan = project.ask("plan", "demo")

    project.ask("apply", plan["plan"])

    assert plan["reprocess"] == 3
    hits = project.ask("search", "page good", "--group", "a")["hits"]
    assert {hit["title"] for hit in hits} == {"page good, read"}
    assert hits[0]["snippet"].count("more") == 1


def test_crawl_when_a_plugin_fails_at_every_document_then_the_run_ends_with_3_and_no_log_has_a_body(
    site: SiteProcess, tmp_path: Path
) -> None:
    names = tuple(f"n{number}" for number in range(40))
    settings = {"ITEM_PIPELINES": {"mine.Failing": 50}}
    project = prepared(site, tmp_path, "failing.acme.test", names, settings=settings)

    ended = project.crawl()
    more = project.crawl("-s", "SEARCHCRAWL_PLUGIN_ERRORS=0,0")

    assert (ended.exit_code, ended.status["run"]["end_reason"]) == (3, "plugin_errors")
    assert "the run ends: pipeline mine.Failing failed at 20 documents in a row (SEARCHCRAWL_PLUGIN_ERRORS)" in (
        project.log()
    )
    assert more.exit_code == 0
    lines = [line for line in project.log().splitlines() if "mine.Failing: RuntimeError" in line]
    assert 20 <= len(lines) <= 40
    assert max(map(len, lines)) < 500
    assert "Traceback" not in project.log()
    assert project.indexed() == ["failing.acme.test/"]


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (
            {"settings": {"ITEM_PIPELINES": {"mine.Nope": 50}}},
            "settings.ITEM_PIPELINES: cannot be imported: AttributeError: module 'mine' has no attribute 'Nope' (got \"mine.Nope\")",
        ),
        (
            {"settings": {"EXTENSIONS": {"nowhere.Extension": 1}}},
            "settings.EXTENSIONS: cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
        ),
        (
            {"settings": {"ITEM_PIPELINES": {"mine.Early": 300}}},
            "settings.ITEM_PIPELINES: mine.Early comes too late at 300: what is indexed is settled at 200, give it a ",
        ),
        (
            {"settings": {"SEARCHCRAWL_PLUGIN_ERRORS": "many"}},
            "settings.SEARCHCRAWL_PLUGIN_ERRORS: must be two numbers",
        ),
        (
            {"settings": {"ITEM_PIPELINES": {"mine.CannotBegin": 50}}},
            "settings.ITEM_PIPELINES: mine.CannotBegin cannot begin: SystemExit('no licence')",
        ),
        ({"document_service": "mine:Nope"}, "document_service: cannot be imported: AttributeError: "),
        ({"document_service": "mine:Early"}, "document_service: has no method process"),
        ({"document_service": "mine:Broken"}, "document_service: mine:Broken cannot begin: RuntimeError('no service')"),
        ({"project": CONVERTERS}, f"searchcrawl.toml: {UNABLE}"),
        (
            {"options": ("-s", 'ITEM_PIPELINES={"mine.Nope": 50}')},
            "command line: -s ITEM_PIPELINES: cannot be imported: AttributeError: ",
        ),
        (
            {"settings": {"EXTENSIONS": {"mine.Leaving": 50}}},
            "settings: components: mine.Leaving cannot begin: SystemExit(0)",
        ),
    ],
)
def test_crawl_when_a_plugin_cannot_be_had_then_exit_4_with_file_and_key_and_no_request(
    site: SiteProcess, tmp_path: Path, keys: dict[str, Any], line: str
) -> None:
    project = prepared(site, tmp_path, "refused.acme.test", ("good",), **keys)
    site.clear_log()

    ended = project.crawl()

    said = line if line.startswith(("searchcrawl.toml", "command line", "settings: ")) else f"sources/demo.toml: {line}"
    assert (ended.exit_code, ended.errors[: len(said)], ended.errors.count("\n")) == (4, said, 1)
    assert site.log() == []


def test_converter_when_it_cannot_be_made_then_the_check_says_so(site: SiteProcess, tmp_path: Path) -> None:
    project = prepared(site, tmp_path, "converters.acme.test", ("good",), project=CONVERTERS)

    checked, as_json = project.command("sources", "check"), project.ask("sources", "check", code=4)

    assert (checked.returncode, f"searchcrawl.toml: {UNABLE}" in checked.stderr) == (4, True)
    assert [error["file"] for error in as_json["errors"]] == ["searchcrawl.toml"]


SWALLOWING: Final = """
class Pipeline:
    async def process_item(self, item):
        item.title = "seen"
        return item

class Middleware:
    async def process_spider_output(self, response, result):
        async for each in result:
            if not response.url.endswith("/swallowed.html"):
                yield each
"""


def test_crawl_when_a_spider_middleware_swallows_a_page_then_its_row_fails_and_the_run_ends(
    site: SiteProcess, tmp_path: Path
) -> None:
    host, names = "swallowing.acme.test", ("good", "swallowed")
    pages(site, host, **{name: page(f"page {name}") for name in names})
    project = new_project(tmp_path, site, **source(site, host))
    (tmp_path / "mine.py").write_text(SWALLOWING, "utf-8")

    ended = project.crawl(
        "-s", 'SPIDER_MIDDLEWARES={"mine.Middleware": 50}', "-s", 'ITEM_PIPELINES={"mine.Pipeline": 50}'
    )

    rows = project.rows()
    assert ended.exit_code == 0
    assert {name: rows[f"{host}/{name}.html"]["code"] for name in names} == {"good": 200, "swallowed": 903}
    assert {hit.fields["title"] for hit in project.hits("*")} == {"seen"}
    assert "handed no page on" in rows[f"{host}/swallowed.html"]["error"]


RAISING: Final = """
from scrapy.exceptions import IgnoreRequest

class Downloading:
    def process_request(self, request):
        if request.url.endswith("/ignored.html"):
            raise IgnoreRequest("not for us")
        if request.url.endswith("/broken.html"):
            raise RuntimeError("cannot cope")

    def process_response(self, request, response):
        if request.url.endswith("/late.html"):
            self.refuse(response.body.decode())
        return None if request.url.endswith("/nothing.html") else response

    def refuse(self, text):
        raise IgnoreRequest("with the word late" if "late" in text else "")

class Reading:
    def process_spider_input(self, response):
        if response.url.endswith("/unread.html"):
            raise IgnoreRequest

class Never:
    async def process_request(self, request):
        if request.url.endswith("0.html"):
            raise ValueError("never")
"""
NO_RESPONSE: Final = (
    "middleware mine.Downloading: _InvalidOutput: Middleware Downloading.process_response must return Response or Request, "
    "got <class 'NoneType'>"
)


def test_crawl_when_a_middleware_refuses_a_page_or_fails_at_it_then_it_is_named_and_the_page_is_not_tried_again(
    site: SiteProcess, tmp_path: Path
) -> None:
    host, names = "middlewares.acme.test", ("good", "ignored", "broken", "late", "nothing", "unread")
    pages(site, host, **{name: page(f"page {name}") for name in names})
    project = new_project(tmp_path, site, **source(site, host))
    project.crawl()
    keys = {"DOWNLOADER_MIDDLEWARES": {"mine.Downloading": 450}, "SPIDER_MIDDLEWARES": {"mine.Reading": 50}}
    (tmp_path / "mine.py").write_text(RAISING, "utf-8")
    project.edit(**source(site, host), settings=keys, lifecycle={"max_delete_percent": 100})
    site.clear_log()

    ended = project.crawl()

    rows = {name: project.rows()[f"{host}/{name}.html"] for name in names}
    assert ended.exit_code == 0
    assert {name: (row["code"], row["rule"], row["error"]) for name, row in rows.items()} == {
        "good": (200, None, None),
        "ignored": (952, "settings.DOWNLOADER_MIDDLEWARES: mine.Downloading: not for us", None),
        "broken": (903, None, "middleware mine.Downloading: RuntimeError: cannot cope"),
        "late": (952, "settings.DOWNLOADER_MIDDLEWARES: mine.Downloading: with the word late", None),
        "nothing": (903, None, NO_RESPONSE),
        "unread": (952, "settings.SPIDER_MIDDLEWARES: mine.Reading", None),
    }
    assert [entry["path"] for entry in site.log()].count("/nothing.html") == 1
    # Who is refused leaves the index, who failed stays.
    assert project.indexed() == [f"{host}/", *(f"{host}/{name}.html" for name in ("broken", "good", "nothing"))]
    assert "Traceback" not in project.log()
    explained = project.command("explain", site.url(host, "/ignored.html"), "--json").stdout
    assert '"file":"sources/demo.toml","key":"settings.DOWNLOADER_MIDDLEWARES"' in explained


def test_crawl_when_a_middleware_fails_at_more_pages_than_a_plugin_may_then_the_run_ends_with_3(
    site: SiteProcess, tmp_path: Path
) -> None:
    host, names = "never.acme.test", [f"n{number}" for number in range(100)]
    pages(site, host, **{name: page(f"page {name}") for name in names})
    settings = {"DOWNLOADER_MIDDLEWARES": {"mine.Never": 450}}
    project = new_project(tmp_path, site, **source(site, host), settings=settings)
    (tmp_path / "mine.py").write_text(RAISING, "utf-8")

    ended = project.crawl("-s", "SEARCHCRAWL_PLUGIN_ERRORS=4,5")
    resumed = project.crawl("-s", "SEARCHCRAWL_PLUGIN_ERRORS=20,50")

    assert (ended.exit_code, ended.status["run"]["end_reason"]) == (3, "plugin_errors")
    assert "the run ends: middleware mine.Never failed at 5 of " in project.log()
    assert resumed.exit_code == 0


PRINTS: Final = "prints.acme.test"
PRINTING: Final = """
from searchcrawl.plugins import Converted

print("said at import")

class Notes:
    def convert(self, body, *, url, mimetype):
        print("said by a converter")
        return Converted(text=body.decode())

class Service:
    def process(self, document):
        print("said by a service")
        return document

class Pipeline:
    def process_item(self, item):
        print("said by a pipeline")
        return item
"""
TALKING: Final = """
import scrapy

class Talking(scrapy.Spider):
    name = "talking"

    async def start(self):
        print("said by a spider in Python")
        yield {"word": "juniper"}
"""
SAID: Final = ("at import", "by a converter", "by a service", "by a pipeline")


@pytest.fixture
def talking(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    site.set_page(PRINTS, "/", page("start", "/read.note"))
    site.set_page(PRINTS, "/read.note", "juniper", content_type="application/x-note")
    settings = {"ITEM_PIPELINES": {"prints_of_site.Pipeline": 100}}
    tables = source(site, PRINTS) | {"document_service": "prints_of_site:Service", "settings": settings}
    converters = {"converters": {"application/x-note": "prints_of_site:Notes"}}
    made = new_project(tmp_path, site, project=converters, **tables)
    (tmp_path / "prints_of_site.py").write_text(PRINTING, "utf-8")
    (tmp_path / "spiders_of_site").mkdir()
    (tmp_path / "spiders_of_site" / "__init__.py").write_text("", "utf-8")
    (tmp_path / "spiders_of_site" / "talking.py").write_text(TALKING, "utf-8")
    use_settings_module(tmp_path, "SPIDER_MODULES = ['spiders_of_site']\n")
    return made


@pytest.mark.parametrize("processes", ["1", "2"])
def test_l1_crawl_when_own_code_prints_then_the_answer_is_json_alone(talking: CrawlProject, processes: str) -> None:
    crawled = talking.crawl("--processes", processes)

    assert crawled.exit_code == 0
    assert len(talking.indexed()) == 2
    assert [each for each in SAID if f"said {each}" not in crawled.errors] == []


@pytest.mark.parametrize("command", [("sources", "check", "--json"), ("status", "demo", "--json")])
def test_l1_command_when_own_modules_print_then_the_answer_is_json_alone(
    talking: CrawlProject, command: tuple[str, ...]
) -> None:
    done = talking.command(*command)

    assert isinstance(json.loads(done.stdout), dict)
    assert "said at import" in done.stderr


def test_l1_spider_in_python_when_it_prints_then_that_is_its_answer(talking: CrawlProject) -> None:
    done = talking.command("crawl", "talking", "-o=-:jsonlines")

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["said by a spider in Python", '{"word": "juniper"}']
