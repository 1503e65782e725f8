"""``[settings]`` of a source: users' own components and values for Scrapy.

What a promise rests on is refused, and what no run could begin with, wherever it is written.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project, use_settings_module
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess, source_toml, write_project

HOST: Final = "settings.acme.test"
COMPONENTS: Final = '''
import logging
from pathlib import Path

from scrapy.exceptions import DropItem


class Choosy:
    def __init__(self, words):
        self._words = words

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings.getlist("MINE_UNWANTED"))

    def process_item(self, item):
        if any(word in item.url for word in self._words):
            raise DropItem("unwanted")
        return item


class Teller:
    """Says what Scrapy got."""

    @classmethod
    def from_crawler(cls, crawler):
        settings = crawler.settings
        names = ("MINE", "MINE_TREE", "MEMUSAGE_LIMIT_MB", "RETRY_ENABLED")
        Path(settings["MINE_FILE"]).write_text(repr({name: settings[name] for name in names}))
        return cls()
'''


@pytest.fixture(scope="module")
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, one=page("one"), two=page("two"), three=page("three"))
    return site


def prepared(site: SiteProcess, folder: Path, settings: dict[str, Any], **project: Any) -> CrawlProject:
    """A project with components of its own beside its source."""
    made = new_project(folder, site, project=project, settings=settings, **source(site, HOST))
    (folder / "mine.py").write_text(COMPONENTS, "utf-8")
    site.clear_log()
    return made


def test_crawl_when_a_source_has_settings_then_scrapy_gets_them_and_other_sources_do_not(
    site: SiteProcess, tmp_path: Path
) -> None:
    told = tmp_path / "told.txt"
    settings = {
        "ITEM_PIPELINES": {"mine.Choosy": 50},
        "EXTENSIONS": {"mine.Teller": 1},
        "MINE_UNWANTED": ["two", "three"],
        "MINE_FILE": str(told),
        "MINE": 1.5,
        "MEMUSAGE_LIMIT_MB": 1000,
    }
    defaults = {"settings": {"MINE": 1, "MINE_TREE": {"a": [True, "b"]}}}
    project = prepared(site, tmp_path, settings, defaults=defaults)
    write_project(tmp_path, site, "plain", project={"defaults": defaults}, **source(site, HOST))

    chosen = project.crawl()
    all_of_it = CrawlProject(folder=tmp_path, site=site, name="plain").crawl()

    assert (chosen.exit_code, all_of_it.exit_code) == (0, 0)
    assert told.read_text() == repr(
        {
            "MINE": 1.5,
            "MINE_TREE": {"a": [True, "b"]},
            "MEMUSAGE_LIMIT_MB": 1000,
            "RETRY_ENABLED": False,
        }
    )
    assert project.indexed() == [f"{HOST}/", f"{HOST}/one.html"]
    assert len(CrawlProject(folder=tmp_path, site=site, name="plain").indexed()) == 4


def test_crawl_when_the_pipelines_of_a_source_change_then_everything_is_processed_again(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = prepared(site, tmp_path, {"MINE": 1})
    project.crawl()

    (tmp_path / "sources" / "demo.toml").write_text(source_toml(site, settings={"MINE": 2}, **source(site, HOST)))
    other_value = project.command("status", "demo", "--json").stdout
    keys = {"MINE_UNWANTED": ["two"], "ITEM_PIPELINES": {"mine.Choosy": 50}}
    (tmp_path / "sources" / "demo.toml").write_text(source_toml(site, settings=keys, **source(site, HOST)))
    pipelines = project.command("status", "demo", "--json").stdout

    assert '"force_recrawl":null' in other_value
    assert '"force_recrawl":"changed: settings.ITEM_PIPELINES"' in pipelines


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"JOBDIR": "jobs"}, "settings.JOBDIR: not for a source: the URL table is the queue and remembers what was seen; a "),
        ({"DOWNLOAD_DELAY": 3}, "settings.DOWNLOAD_DELAY: not for a source: the pace of each host is kept in the database: "),
        ({"REMOTE_CONTROL_ENABLED": True}, "settings.REMOTE_CONTROL_ENABLED: not for a source: it runs code for whoever "),
        (
            {"ITEM_PIPELINES": {"searchcrawl.commit.cache_pipeline.CachePipeline": 1}},
            "settings.ITEM_PIPELINES: not for a source: the place of searchcrawl.commit.cache_pipeline.CachePipeline is ",
        ),
    ],
)  # fmt: skip
def test_crawl_when_a_setting_would_break_a_promise_then_exit_4_and_no_request(
    site: SiteProcess, tmp_path: Path, settings: dict[str, Any], line: str
) -> None:
    ended = prepared(site, tmp_path, settings).crawl()

    assert ended.exit_code == 4
    assert ended.errors.startswith(f"sources/demo.toml: {line}")
    assert ended.errors.count("\n") == 1
    assert site.log() == []


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("RETRY_ENABLED=1", "-s RETRY_ENABLED: not for a source: the URL table tries again: use fetch.retries"),
        ("USER_AGENT=me", "-s USER_AGENT: not for a source: use user_agent and contact in searchcrawl.toml"),
        (
            'ITEM_PIPELINES={"searchcrawl.commit.cache_pipeline.CachePipeline": null}',
            "-s ITEM_PIPELINES: not for a source: the place of searchcrawl.commit.cache_pipeline.CachePipeline is fixed",
        ),
    ],
)
def test_crawl_when_the_command_line_would_break_a_promise_then_exit_2_and_no_request(
    site: SiteProcess, tmp_path: Path, option: str, line: str
) -> None:
    ended = prepared(site, tmp_path, {}).crawl("-s", option)

    assert ended.exit_code == 2
    assert ended.errors.splitlines()[-1] == f"searchcrawl crawl: error: {line}"
    assert site.log() == []


def test_crawl_when_the_project_has_a_settings_module_then_its_own_values_count_and_promises_stay(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = prepared(site, tmp_path, {"EXTENSIONS": {"mine.Teller": 1}, "MINE_FILE": str(tmp_path / "told.txt")})
    own = "MINE = 'house'\nMAIL_PASS = 'c4n4ry of mail ' * 9\n"
    use_settings_module(tmp_path, f"{own}DOWNLOAD_DELAY = 300\nROBOTSTXT_OBEY = True\n")
    good = project.crawl()
    site.clear_log()
    use_settings_module(tmp_path, f"{own}TWISTED_REACTOR = 'mine.Reactor'\n")
    changed = project.crawl()
    (tmp_path / "house.py").write_text(
        "MINE = 1\nSPIDER_LOADER_CLASS = 'searchcrawl.spiders.spider_loader.SourceSpiderLoader'\n"
    )
    without_ours = project.crawl()

    assert good.exit_code == 0
    assert "'MINE': 'house'" in (tmp_path / "told.txt").read_text()
    assert "MAIL_PASS" in project.log()
    assert "c4n4ry" not in project.log()
    assert (changed.exit_code, without_ours.exit_code) == (4, 4)
    assert changed.errors.startswith("settings module: TWISTED_REACTOR: must be 'twisted.internet.asyncioreactor.")
    assert without_ours.errors == "settings module: ADDONS: must have searchcrawl.addon.SearchcrawlAddon (got {})\n"
    assert site.log() == []


_STATS_READER: Final = """
import json
from pathlib import Path

from scrapy import signals
from scrapy.exceptions import DropItem


class Monitor:
    @classmethod
    def from_crawler(cls, crawler):
        monitor = cls()
        monitor.stats = crawler.stats
        crawler.signals.connect(monitor.spider_closed, signal=signals.spider_closed)
        return monitor

    def spider_closed(self, spider, reason):
        Path("stats.json").write_text(json.dumps(self.stats.get_stats(), default=str))


class Unwanted:
    def process_item(self, item):
        if item.title == "unwanted":
            raise DropItem("unwanted")
        return item
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_statistics_when_an_extension_reads_them_then_they_are_there_by_scrapys_names(
    site: SiteProcess, tmp_path: Path, processes: int
) -> None:
    pages(site, HOST, a=page("a"), b=page("b", head='<meta name="robots" content="noindex">'), c=page("unwanted"))
    site.set_page(HOST, "/old.html", "", status=302, headers={"Location": "/a.html"})
    site.set_page(HOST, "/", page("start", "/a.html", "/b.html", "/c.html", "/old.html", "/gone.html"))
    settings = {"EXTENSIONS": {"monitor.Monitor": 500}, "ITEM_PIPELINES": {"monitor.Unwanted": 50}}
    made = new_project(tmp_path, site, settings=settings, **source(site, HOST))
    (tmp_path / "monitor.py").write_text(_STATS_READER, "utf-8")
    site.clear_log()

    ended = made.crawl("--processes", str(processes))
    asked = site.log()

    stats = json.loads((tmp_path / "stats.json").read_text("utf-8"))
    assert ended.exit_code == 0
    assert stats["downloader/request_count"] == stats["downloader/request_method_count/GET"] == len(asked)
    statuses = Counter(entry["status"] for entry in asked)
    assert {name.rpartition("/")[2]: count for name, count in stats.items() if "/response_status_count/" in name} == {
        str(status): count for status, count in statuses.items()
    }
    assert stats["response_received_count"] == len(asked) - statuses[302]
    assert min(stats["downloader/request_bytes"], stats["downloader/response_bytes"]) > 100 * len(asked)
    # The start page, a, and the same through the redirect.
    assert (stats["item_scraped_count"], stats["item_dropped_count"]) == (3, 1)
    assert stats["item_dropped_reasons_count/DropItem"] == 1
    assert (stats["finish_reason"], stats["log_count/INFO"] > 0) == ("finished", True)
    assert stats["elapsed_time_seconds"] >= 0
    assert stats["start_time"] <= stats["finish_time"]


WRONG: Final = (
    ("SEARCHCRAWL_MIN_FREE_MB", "abc", 'must be a number of at least 0 (got "abc")'),
    ("MEMUSAGE_LIMIT_MB", "x", 'must be a whole number of at least 0 (got "x")'),
    ("SEARCHCRAWL_STALL_SECONDS", "-3", 'must be a number of at least 0 (got "-3")'),
    ("SEARCHCRAWL_STALL_SECONDS", "nan", 'must be a number of at least 0 (got "nan")'),
    ("SEARCHCRAWL_GUARD", "perhaps", 'must be True or False (got "perhaps")'),
    ("SEARCHCRAWL_NOPE", "1", 'there is no such setting (got "1")'),
    (
        "SEARCHCRAWL_STALL_SECOND",
        "1",
        'there is no such setting (did you mean SEARCHCRAWL_STALL_SECONDS?) (got "1")',
    ),
)


@pytest.fixture(scope="module")
def plain(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    folder: Path = tmp_path_factory.mktemp("settings") / "p"
    return new_project(folder, site)


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_crawl_when_a_setting_of_the_command_line_is_wrong_then_exit_2_and_its_name(
    plain: CrawlProject, site: SiteProcess, name: str, value: str, message: str
) -> None:
    log = plain.folder / "job.log"
    site.clear_log()

    for command in (["crawl", "demo", "--logfile", str(log)], ["doctor"]):
        ended = plain.command(*command, "-s", f"{name}={value}")

        assert ended.returncode == 2
        assert ended.stderr.splitlines()[-1] == f"searchcrawl {command[0]}: error: -s {name}: {message}"
    # Where scrapyd has the reason of a job.
    assert log.read_text("utf-8").count(f"no run, exit 2: -s {name}: {message}") == 1
    assert site.log() == []
    log.unlink()


@pytest.mark.parametrize("option", ["--logfile", "--pidfile"])
@pytest.mark.parametrize("program", ["searchcrawl", "scrapy"])
def test_crawl_when_a_file_of_an_option_cannot_be_written_then_exit_2_and_no_traceback(
    plain: CrawlProject, site: SiteProcess, program: str, option: str
) -> None:
    site.clear_log()
    ended = COMMANDS.run_as(program, plain.folder, "crawl", "demo", option, str(plain.folder / "none" / "x"))

    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].endswith(f"{option} {plain.folder}/none/x: No such file or directory")
    assert "Traceback" not in ended.stderr
    assert site.log() == []


def test_crawl_when_a_setting_of_a_file_is_wrong_then_exit_4_and_its_name(site: SiteProcess, tmp_path: Path) -> None:
    made = new_project(tmp_path / "p", site, settings={"SEARCHCRAWL_STALL_SECONDS": -3})
    in_source = made.command("crawl", "demo")
    made.edit()
    use_settings_module(made.folder, "MEMUSAGE_LIMIT_MB = 'x'\n")
    in_module = made.command("crawl", "demo")

    said = "sources/demo.toml: settings.SEARCHCRAWL_STALL_SECONDS: must be a number of at least 0 (got -3)\n"
    assert (in_source.returncode, in_source.stderr) == (4, said)
    said = 'settings module: MEMUSAGE_LIMIT_MB: must be a whole number of at least 0 (got "x")\n'
    assert (in_module.returncode, in_module.stderr) == (4, said)
