"""``[feeds]`` and ``crawl NAME -o FILE``: documents of a source in files, whole or as deltas that add up to the index (K4)."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pyarrow.parquet
import pytest

from searchcrawl.failpoints import OF_FEEDS
from tests import backends
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import decide, is_verified
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess
from tests.site.expected import short

HOST: Final = "feeds.acme.test"
EXPORTED: Final = "exports.acme.test"
ALL: Final = "all.jsonl"
DELTA: Final = "out/%(name)s-%(delta)s.jsonl"
FEEDS: Final = {
    ALL: {},
    "all.txt": {"format": "csv"},
    "all.parquet": {},
    DELTA: {"delta": True},
    "out/p-%(delta)s.parquet": {"delta": True},
    "out/c-%(delta)s.csv": {"delta": True},
}
TWO: Final = {ALL: {}, DELTA: {"delta": True}}
PAGES: Final = {name: page(f"page {name}") for name in "abcd"}


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        pages(site, HOST, **PAGES)
        yield site


def build(folder: Path, site: SiteProcess, feeds: dict[str, Any], **more: Any) -> CrawlProject:
    (folder / "out").mkdir(parents=True)
    head = {"attributes": {"meta:price": "price", "meta:seen": "seen", "types": {"price": "number", "seen": "date"}}}
    return new_project(folder, site, **source(site, HOST), **head, feeds=feeds, **more)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_table(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


def read_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [{**row, "deleted": row["deleted"] == "true"} for row in csv.DictReader(file)]


def add_up(project: CrawlProject, names: str = "demo-*.jsonl", *, put_back: bool = False) -> dict[str, int]:
    """The version of each document after all deltas, by short URL; of a store ``put_back`` they may repeat removals."""
    read = {".jsonl": read_lines, ".parquet": read_table, ".csv": read_csv}
    there: dict[str, dict[str, Any]] = {}
    for path in sorted((project.folder / "out").glob(names)):
        for row in read[path.suffix](path):
            if row["deleted"] and put_back:
                there.pop(row["id"], None)
            elif row["deleted"]:
                del there[row["id"]]
            else:
                there[row["id"]] = row
    return {short(row["url"]): int(row["crawl_version"]) for row in there.values()}


def read_all(project: CrawlProject) -> dict[str, int]:
    return {short(row["url"]): row["crawl_version"] for row in read_lines(project.folder / ALL)}


def list_deltas(project: CrawlProject) -> list[str]:
    return sorted(path.name for path in (project.folder / "out").glob("demo-*"))


def assert_true(project: CrawlProject, *, put_back: bool = False, resent: bool = False) -> None:
    """All files say what the index has, and nothing is left over; what was ``resent`` to the index alone has not changed."""
    versions = project.versions()
    told = add_up(project, put_back=put_back)
    assert (told.keys() == versions.keys()) if resent else (told == versions)
    assert read_all(project) == versions
    assert not list(project.folder.rglob(".*.part"))


@pytest.mark.matrix
def test_feeds_when_pages_come_change_go_and_return_then_files_say_what_the_index_has(
    site: SiteProcess, tmp_path: Path
) -> None:
    head = '<meta name="price" content="3"><meta name="price" content="4.5"><meta name="seen" content="2030-01-31">'
    site.set_page(HOST, "/a.html", page("page a", text="=1+1", head=head))
    project = build(tmp_path, site, FEEDS)

    first = project.crawl()
    assert_true(project)
    table = {row["title"]: row for row in read_table(project.folder / "all.parquet")}
    schema = pyarrow.parquet.read_schema(project.folder / "all.parquet")
    rows = (project.folder / "all.txt").read_text("utf-8")
    site.set_page(HOST, "/b.html", page("page b anew"))
    site.delete_page(HOST, "/c.html")
    project.crawl()
    assert_true(project)
    second = read_lines(project.folder / "out" / "demo-000002.jsonl")
    unchanged = project.crawl()
    deltas = list_deltas(project)
    site.set_page(HOST, "/c.html", PAGES["c"])
    project.crawl()
    assert_true(project)

    assert (first.exit_code, unchanged.exit_code) == (0, 0)
    # A run that changes nothing has no delta.
    assert deltas == ["demo-000001.jsonl", "demo-000002.jsonl"]
    assert list_deltas(project) == [*deltas, "demo-000003.jsonl"]
    gone, changed = sorted(second, key=lambda row: not row["deleted"])
    assert (gone.keys(), changed["title"], changed["deleted"]) == ({"id", "deleted"}, "page b anew", False)
    assert table["page a"]["price_l"] == [3.0, 4.5]
    assert table["page a"]["seen_dt"][0].isoformat() == "2030-01-31T00:00:00+00:00"
    assert table["page a"]["crawled_at"].tzinfo is not None
    assert table["page b"]["price_l"] is None
    assert (str(schema.field("crawl_version").type), str(schema.field("duplicates").type)) == (
        "int64",
        "list<element: string>",
    )
    assert "deleted" not in schema.names
    assert "=1+1" in rows
    assert add_up(project, "p-*") == add_up(project, "c-*") == project.versions()


def test_deltas_when_other_commands_change_the_index_then_the_next_run_writes_what_they_did(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, TWO, lifecycle={"max_delete_documents": 0})
    project.crawl()
    project.command("forget", "--yes", site.url(HOST, "/a.html"))
    project.command("resend", "demo")
    site.delete_page(HOST, "/b.html")
    held = project.crawl()
    assert_true(project, resent=True)
    assert held.exit_code == 9
    assert f"{HOST}/b.html" in read_all(project)

    decide(project, "approve")
    project.crawl()
    assert_true(project, resent=True)
    assert f"{HOST}/b.html" not in read_all(project)

    project.command("delete", "demo", "--yes")
    assert_true(project)
    assert read_all(project) == {}

    # What was deleted begins anew, after the files that are there.
    number = len(list_deltas(project))
    project.crawl()
    assert_true(project)
    assert len(list_deltas(project)) == number + 1


def test_deltas_when_pages_are_forgotten_then_one_that_came_again_is_told_once_and_one_that_came_and_went_never(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, TWO)
    project.crawl()
    project.command("forget", "--yes", site.url(HOST, "/a.html"))
    (tmp_path / "forgotten.txt").unlink()
    project.command("forget", "--yes", site.url(HOST, "/b.html"))
    project.crawl()
    assert_true(project)
    told = [(row["deleted"], row["id"]) for row in read_lines(project.folder / "out" / "demo-000002.jsonl")]

    # One that had gone, and is forgotten, has gone already.
    site.delete_page(HOST, "/c.html")
    project.crawl()
    number = len(list_deltas(project))
    project.command("forget", "--yes", site.url(HOST, "/c.html"))
    project.crawl()

    assert (len(list_deltas(project)), number) == (3, 3)
    assert f"{HOST}/a.html" in read_all(project)
    assert len({each for _, each in told}) == len(told)
    assert sorted(deleted for deleted, _ in told) == [False, True]


def test_delta_when_the_deletion_of_the_source_was_killed_then_no_id_is_in_it_twice(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, TWO)
    project.crawl()

    killed = COMMANDS.run(project.folder, "delete", "demo", "--yes", SEARCHCRAWL_FAILPOINT="source.rows")
    # Found in another order, they get other rows.
    pages(site, HOST, **dict(reversed(PAGES.items())))
    project.crawl()

    told = [row["id"] for row in read_lines(project.folder / "out" / "demo-000002.jsonl")]
    assert killed.returncode == -signal.SIGKILL
    assert len(told) == len(set(told)) == len(PAGES) + 1
    assert_true(project)


@pytest.mark.few(2)
@pytest.mark.parametrize("point", OF_FEEDS)
def test_feeds_when_killed_at_any_step_then_the_next_run_loses_and_repeats_nothing(
    site: SiteProcess, tmp_path: Path, point: str
) -> None:
    project = build(tmp_path, site, TWO)
    project.crawl()
    site.set_page(HOST, "/new.html", page("a page that comes and goes"))
    site.set_page(
        HOST, "/", page("start", text=" ".join(f'<a href="{name}.html">{name}</a>' for name in (*PAGES, "new")))
    )
    site.delete_page(HOST, "/d.html")

    # Both are written: the one of all documents passes the second of these steps as well.
    killed = project.crawl(SEARCHCRAWL_FAILPOINT=f"{point}:{2 if point == 'feed.written' else 1}")
    site.delete_page(HOST, "/new.html")
    site.set_page(HOST, "/d.html", PAGES["d"])
    site.set_page(HOST, "/a.html", page("page a anew"))
    again = project.crawl()

    assert (killed.exit_code, again.exit_code) == (-signal.SIGKILL, 0)
    assert_true(project)
    assert is_verified(project)
    # Of the two runs each document is in at most one.
    came = [row for path in list_deltas(project)[1:] for row in read_lines(project.folder / "out" / path)]
    versions = [(row["id"], row.get("crawl_version")) for row in came]
    assert len(set(versions)) == len(versions)


def test_feeds_when_a_file_cannot_be_written_then_exit_7_and_the_next_run_writes_it(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, TWO)

    full = project.crawl(SEARCHCRAWL_FAILPOINT="feed.written:1:enospc")
    left = [path.name for path in project.folder.rglob("*.jsonl*")]
    project.crawl()

    assert full.exit_code == 7
    assert (full.status["run"]["end_reason"], left) == ("finished", [])
    assert "the feed all.jsonl cannot be written: [Errno 28]" in full.errors
    assert_true(project)


def test_feeds_when_nothing_is_delivered_then_files_stay_and_without_the_table_they_are_forgotten(
    site: SiteProcess, tmp_path: Path
) -> None:
    project = build(tmp_path, site, TWO)
    project.crawl()
    site.set_page(HOST, "/a.html", page("page a anew"))
    project.edit(**source(site, HOST), feeds=TWO, test=True)
    project.crawl()
    assert_true(project)

    # What waited is sent by `apply`, and what the edit refuses leaves.
    edited = {**source(site, HOST, scope={"exclude_urls": ["*/b.html"]}), "feeds": TWO}
    project.edit(**edited)
    plan = project.ask("plan", "demo")["plan"]
    before = list_deltas(project)
    applied = project.command("apply", plan)
    assert (applied.returncode, len(before), len(list_deltas(project))) == (0, 1, 2)
    assert_true(project)
    assert f"{HOST}/b.html" not in read_all(project)

    project.edit(**{**edited, "feeds": {}})
    project.crawl()
    project.edit(**{**edited, "feeds": {DELTA: {"delta": True}}})
    project.crawl()

    # It begins anew, with all documents.
    assert len(read_lines(project.folder / "out" / "demo-000003.jsonl")) == len(project.versions())
    assert len(list_deltas(project)) == 3


def test_delta_when_it_waits_for_its_name_then_no_other_feed_of_the_folder_takes_it_for_a_rest(
    site: SiteProcess, tmp_path: Path
) -> None:
    feeds = {"out/%(name)s-%(time)s.txt": {"format": "csv"}, DELTA: {"delta": True}}
    project = build(tmp_path, site, feeds)
    project.crawl(SEARCHCRAWL_FAILPOINT="feed.noted")
    rest = project.folder / "out" / ".demo-000007.jsonl.part"
    rest.write_text("of a process that was killed")
    (project.folder / "out" / "other.part").write_text("of somebody else")

    project.crawl()

    assert add_up(project) == project.versions()
    assert list(project.folder.rglob("*.part")) == [project.folder / "out" / "other.part"]


@pytest.mark.few(2)
@pytest.mark.parametrize("before", [(), ("verify", "demo", "--repair", "--yes")], ids=["crawl", "repair"])
@pytest.mark.parametrize("point", ["", "links.mid:1", "row.updated", "feed.staged", "feed.noted"])
def test_deltas_when_the_store_was_put_back_then_documents_that_it_does_not_know_are_removed_as_well(
    site: SiteProcess, tmp_path: Path, point: str, before: tuple[str, ...]
) -> None:
    project = build(tmp_path / "project", site, TWO)
    project.crawl()
    saved = backends.current.copy(project.folder, tmp_path / "saved")
    pages(site, HOST, **PAGES, new=page("a page that comes and goes"))
    site.delete_page(HOST, "/d.html")
    site.set_page(HOST, "/b.html", page("page b anew"))
    project.crawl()
    told = add_up(project)
    backends.current.put_back("store", saved, project.folder)
    site.delete_page(HOST, "/new.html")
    site.delete_page(HOST, "/b.html")

    if before:
        project.command(*before)
    if point:
        project.crawl(SEARCHCRAWL_FAILPOINT=point)
    project.crawl()

    assert f"{HOST}/new.html" in told
    assert add_up(project, put_back=True).keys() == {f"{HOST}/", f"{HOST}/a.html", f"{HOST}/c.html"}
    assert_true(project, put_back=True)


def test_deltas_when_the_store_was_lost_then_what_left_since_is_removed(site: SiteProcess, tmp_path: Path) -> None:
    project = build(tmp_path / "project", site, TWO)
    project.crawl()
    backends.current.lose_store(project.folder)
    site.delete_page(HOST, "/b.html")

    project.crawl()

    assert f"{HOST}/b.html" not in add_up(project, put_back=True)
    assert_true(project, put_back=True)


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    head = '<meta name="price" content="3"><meta name="price" content="4.5">'
    pages(site, EXPORTED, a=page("page a", text='some "words", a;b', head=head), b=page("=page b"), c=page("=page b"))
    attributes = {"meta:price": "price", "types": {"price": "number"}}
    return new_project(tmp_path, site, **source(site, EXPORTED), attributes=attributes)


def read_by_name(path: Path) -> dict[str, dict[str, Any]]:
    """The documents of a file by the end of their URL."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["url"].rpartition("/")[2]: row for row in rows}


def test_crawl_when_a_file_is_named_then_it_has_what_the_index_has_after_the_run(
    site: SiteProcess, project: CrawlProject
) -> None:
    lines, table = project.folder / "docs.jsonl", project.folder / "docs.txt"
    lines.write_text("what was there before", "utf-8")

    first = project.crawl("-o", str(lines), "-O", f"{table}:csv")
    exported, versions = read_by_name(lines), project.versions()
    site.delete_page(EXPORTED, "/a.html")
    second = project.crawl("-o", str(lines))

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert f"searchcrawl: 3 documents in {lines}\n" in first.errors
    # A copy is no document of its own.
    assert sorted(exported) == ["", "a.html", "b.html"]
    document = exported["a.html"]
    assert document["crawl_version"] == versions[f"{EXPORTED}/a.html"]
    assert (document["title"], document["price_l"], document["source"]) == ("page a", [3, 4.5], "demo")
    assert document["content"].startswith('some "words", a;b')
    assert document["crawled_at"].endswith("Z")
    assert exported["b.html"]["duplicates"] == [site.url(EXPORTED, "/c.html")]
    assert not [name for name in document if "_txt_" in name or name == "text_signature"]
    rows = list(csv.DictReader(io.StringIO(table.read_bytes().decode("utf-8"), newline="")))
    assert {row["title"]: (row["price_l"], row["content"][:17]) for row in rows}["page a"] == (
        "[3,4.5]", 'some "words", a;b',
    )  # fmt: skip
    # The text of a page is no formula of the one who opens the file.
    assert (exported["b.html"]["title"], "'=page b" in {row["title"] for row in rows}) == ("=page b", True)
    assert sorted(read_by_name(lines)) == ["", "b.html"]
    assert not list(project.folder.glob(".*.part"))


def test_crawl_when_a_file_has_a_format_of_scrapy_then_it_reads_as_one_of_scrapy_does(
    site: SiteProcess, project: CrawlProject
) -> None:
    pages(site, EXPORTED, a=page("a &amp; b &lt;c&gt;", text="]]> \x0b &#13; end"), b=page("page b"), c=page("page b"))
    names = ("docs.jsonl", "docs.json", "docs.xml", "docs.jl")

    ended = project.crawl(*(word for name in names for word in ("-o", name)))

    assert ended.exit_code == 0
    lines, array, tree, other = ((project.folder / name).read_text("utf-8") for name in names)
    documents = [json.loads(line) for line in lines.splitlines()]
    assert (json.loads(array), other) == (documents, lines)
    items = {item.findtext("id"): item for item in ET.fromstring(tree).iter("item")}
    assert [item.tag for item in items.values()] == ["item"] * 3
    for document in documents:
        item = items[document["id"]]
        assert [element.tag for element in item] == list(document)
        for name, value in document.items():
            field = item.find(name)
            assert field is not None
            if isinstance(value, list):
                assert [each.text for each in field.findall("value")] == [str(each) for each in value]
            else:
                assert (field.text or "") == str(value).replace("\x0b", "\ufffd")


@pytest.mark.parametrize("module", ["scrapy", "searchcrawl"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "x.xls"), "-o x.xls: the name must end in"),
        (("--foo",), "unrecognized option: --foo"),
        (("-o", "/dev/null:csv"), "-o /dev/null:csv: is no file, but a device, a pipe"),
        (("-a", "foo=1"), "unknown spider argument: -a foo"),
    ],
)
def test_crawl_when_it_is_used_wrongly_then_the_usage_is_a_line(
    project: CrawlProject, module: str, words: tuple[str, ...], said: str
) -> None:
    ended = COMMANDS.run_as(module, project.folder, "crawl", "demo", *words)

    usage, error = ended.stderr.splitlines()
    assert (ended.returncode, usage) == (2, "usage: searchcrawl crawl [options] NAME")
    assert error.startswith(f"searchcrawl crawl: error: {said}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("docs.xls", "the name must end in .jsonl or .json or .csv or .xml or .parquet, or :KIND follows it"),
        ("ftp://files.acme.test/docs.csv", "must be the path of a file: only files of this machine are written"),
    ],
)
def test_crawl_when_a_file_cannot_be_written_then_exit_2_before_any_request(
    site: SiteProcess, project: CrawlProject, name: str, said: str
) -> None:
    site.clear_log()

    ended = project.crawl("-o", name)

    assert (ended.exit_code, ended.errors.splitlines()[-1]) == (2, f"searchcrawl crawl: error: -o {name}: {said}")
    assert site.log() == []


def test_crawl_when_the_name_of_a_file_has_placeholders_then_they_are_those_of_scrapy(project: CrawlProject) -> None:
    assert project.crawl("-o", "%(name)s-%(time)s-100%%.csv").exit_code == 0

    (made,) = project.folder.glob("*.csv")
    assert re.fullmatch(r"demo-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z-100%\.csv", made.name)


@pytest.mark.parametrize("name", ["sources/demo.toml", "var/searchcrawl.db", "searchcrawl.toml"])
def test_crawl_when_a_file_of_the_crawler_would_be_overwritten_then_exit_2(project: CrawlProject, name: str) -> None:
    project.crawl()

    ended = project.crawl("-o", f"{name}:jsonl")

    assert ended.exit_code == 2
    assert f"/{name}: is a place where the crawler keeps its own files" in ended.errors
    assert project.crawl().exit_code == 0


def test_crawl_when_the_cache_keeps_nothing_then_no_file_is_promised(site: SiteProcess, tmp_path: Path) -> None:
    pages(site, EXPORTED, a=page("page a"))
    project = new_project(tmp_path, site, **source(site, EXPORTED), project={"cache": {"preserve": False}})

    ended = project.crawl("-o", "docs.jsonl")

    assert ended.exit_code == 4
    assert ended.errors == (
        "searchcrawl.toml: cache.preserve: must be true for -o: it reads the documents of the cache\n"
    )


def test_crawl_when_records_are_damaged_then_the_rest_is_written_and_their_number_said(project: CrawlProject) -> None:
    project.crawl()
    for segment in (project.folder / "var" / "cache" / "demo").iterdir():
        segment.write_bytes(segment.read_bytes()[: segment.stat().st_size // 2])

    ended = project.crawl("-o", "docs.jsonl")

    assert ended.exit_code == 0
    assert "are not in it: the cache does not have what the index has" in ended.errors
