"""``crawl NAME -o FILE``: the documents of a source as the index has them (K4)."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess

HOST = "exports.acme.test"


@pytest.fixture
def project(site: SiteProcess, tmp_path: Path) -> CrawlProject:
    head = '<meta name="price" content="3"><meta name="price" content="4.5">'
    pages(site, HOST, a=page("page a", text='some "words", a;b', head=head), b=page("=page b"), c=page("=page b"))
    attributes = {"meta:price": "price", "types": {"price": "number"}}
    return new_project(tmp_path, site, **source(site, HOST), attributes=attributes)


def read_lines(path: Path) -> dict[str, dict[str, Any]]:
    """The documents of a file by the end of their URL."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["url"].rpartition("/")[2]: row for row in rows}


def test_crawl_when_a_file_is_named_then_it_has_what_the_index_has_after_the_run(
    site: SiteProcess, project: CrawlProject
) -> None:
    lines, table = project.folder / "docs.jsonl", project.folder / "docs.txt"
    lines.write_text("what was there before", "utf-8")

    first = project.crawl("-o", str(lines), "-O", f"{table}:csv")
    exported, versions = read_lines(lines), project.versions()
    site.delete_page(HOST, "/a.html")
    second = project.crawl("-o", str(lines))

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert f"searchcrawl: 3 documents in {lines}\n" in first.errors
    # A copy is no document of its own.
    assert sorted(exported) == ["", "a.html", "b.html"]
    document = exported["a.html"]
    assert document["crawl_version"] == versions[f"{HOST}/a.html"]
    assert (document["title"], document["price_l"], document["source"]) == ("page a", [3, 4.5], "demo")
    assert document["content"].startswith('some "words", a;b')
    assert document["crawled_at"].endswith("Z")
    assert exported["b.html"]["duplicates"] == [site.url(HOST, "/c.html")]
    assert not [name for name in document if "_txt_" in name or name == "text_signature"]
    rows = list(csv.DictReader(io.StringIO(table.read_bytes().decode("utf-8"), newline="")))
    assert {row["title"]: (row["price_l"], row["content"][:17]) for row in rows}["page a"] == (
        "[3,4.5]", 'some "words", a;b',
    )  # fmt: skip
    # The text of a page is no formula of the one who opens the file.
    assert (exported["b.html"]["title"], "'=page b" in {row["title"] for row in rows}) == ("=page b", True)
    assert sorted(read_lines(lines)) == ["", "b.html"]
    assert not list(project.folder.glob(".*.part"))


def test_crawl_when_a_file_has_a_format_of_scrapy_then_it_reads_as_one_of_scrapy_does(
    site: SiteProcess, project: CrawlProject
) -> None:
    pages(site, HOST, a=page("a &amp; b &lt;c&gt;", text="]]> \x0b &#13; end"), b=page("page b"), c=page("page b"))
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
    pages(site, HOST, a=page("page a"))
    project = new_project(tmp_path, site, **source(site, HOST), project={"cache": {"preserve": False}})

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
