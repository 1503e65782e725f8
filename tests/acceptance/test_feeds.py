"""``[feeds]``: files of a source's documents beside the index, whole or as deltas that add up to it (K4)."""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

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
