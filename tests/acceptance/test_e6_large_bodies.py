"""Bodies that are larger than memory should hold: on the disk from where they come to the cache, and nothing is left there (E6)."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from searchcrawl.codes import Code
from tests.acceptance.support_files import FileProject
from tests.acceptance.support_large import (
    MB,
    MOST_MORE_MEGABYTES,
    large_page,
    large_pdf,
    run_measured,
    write_large_text,
    write_large_zip,
)
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.crawl_forks import Forks
from tests.site.client import SiteProcess
from tests.small_disk import may_mount, small_disk
from tests.stored_rows import query_columns
from tests.threaded_site import APP, QuietHandler, ThreadedSite

HOST: Final = "large.acme.test"
FETCH: Final = {"max_bytes": 1 << 30, "timeout_seconds": 60}
#: A disk with more kilobytes than all takes.
ROOM: Final = 100_000
NOTES: Final = """
from searchcrawl.plugins import Converted

class Notes:
    def convert(self, body, *, url, mimetype):
        assert type(body) is bytes
        return Converted(text=f"a note of {len(body)} bytes")
"""


def fill(root: Path, megabytes: int) -> None:
    """One file of each kind that is read without having it in memory."""
    (root / "a.pdf").write_bytes(large_pdf("pages about quinces", megabytes))
    write_large_zip(root / "b.zip", "what an archive says of medlars", megabytes)
    write_large_text(root / "c.txt", "a line about sloes", megabytes)


def left_in_the_cache(project: Path) -> list[Path]:
    return [
        path for path in (project / "var" / "cache").rglob("*") if path.is_file() and path.suffixes != [".warc", ".gz"]
    ]


@pytest.mark.extended
def test_e6_files_when_they_have_200_mb_then_no_process_takes_memory_of_their_size(
    tmp_path: Path, forks: Forks
) -> None:
    peaks = {}
    for megabytes in (1, 200):
        (tmp_path / str(megabytes)).mkdir()
        files = FileProject(tmp_path / str(megabytes), fetch={"max_bytes": 1 << 30})
        fill(files.root, megabytes)
        files.settle()
        peaks[megabytes] = run_measured(forks, files.folder, "crawl", "files")

    assert files.rows()["c.txt"][0] == Code.CONVERSION_LIMIT
    assert files.found("quinces") == ["a.pdf"]
    assert files.found("medlars") == ["b.zip!/inner.txt"]
    for process, megabytes in peaks[200].items():
        assert megabytes < peaks[1][process] + MOST_MORE_MEGABYTES, peaks


class Streaming(QuietHandler):
    """A start page, and a file that its process does not have in memory."""

    def do_GET(self) -> None:
        if self.path == "/":
            self.answer(200, page("start", "/large"))
        elif self.path == "/large":
            self.send_response(200)
            self.send_header("Content-Length", str(self.site.file.stat().st_size))
            self.end_headers()
            with self.site.file.open("rb") as file:
                shutil.copyfileobj(file, self.wfile, 1 << 20)
        else:
            self.answer(404, "not here")


@pytest.mark.parametrize(
    "processes", [pytest.param(1, marks=pytest.mark.extended), pytest.param(2, marks=pytest.mark.soak)]
)
def test_e6_page_when_it_has_200_mb_then_no_process_takes_memory_of_its_size(
    tmp_path: Path, forks: Forks, processes: int
) -> None:
    peaks, site = {}, ThreadedSite(Streaming)
    fetch = {"max_bytes": 1 << 30, "processes": processes}
    of_app = {"start": {"urls": [site.url()]}, "scope": {"include_hosts": [APP]}, "fetch": fetch}
    with site:
        for megabytes in (1, 200):
            site.file = tmp_path / f"{megabytes}.pdf"
            site.file.write_bytes(large_pdf("pages about quinces", megabytes))
            made = new_project(tmp_path / str(megabytes), site.port, **of_app)
            peaks[megabytes] = run_measured(forks, made.folder, "crawl", "demo")

    assert made.found("quinces") == [f"{APP}/large"]
    for process, megabytes in peaks[200].items():
        assert megabytes < peaks[1][process] + MOST_MORE_MEGABYTES, peaks


def test_e6_files_when_they_are_on_the_disk_then_are_read_as_those_in_memory(tmp_path: Path) -> None:
    files = FileProject(
        tmp_path, project={"converters": {"application/vnd.note": "notes:Notes"}}, file={"inline_mb": 1}
    )
    (files.folder / "notes.py").write_text(NOTES, "utf-8")
    fill(files.root, 2)
    files.fill({
        "d.html": large_page("a page about rowans", 2),
        "e.eml": b"Subject: hips\nContent-Type: text/plain\n\n" + b"a mail about hips\n" * 100_000,
        "f.note": b"x" * 1_500_000,
        "g.bin": os.urandom(1_500_000),
        "h.docx": b"PK\x03\x04" + os.urandom(1_500_000),
        "i.txt": "na\xefve lines about sorbs\n".encode("latin-1") * 60_000,
    })  # fmt: skip
    files.crawl()

    codes = {name: code for name, (code, _) in files.rows().items()}
    words = ("quinces", "medlars", "sloes", "rowans", "hips", '"note of 1500000 bytes"', "na\xefve")
    assert [files.found(word) for word in words] == [
        *(["a.pdf"], ["b.zip!/inner.txt"], ["c.txt"], ["d.html"], ["e.eml"], ["f.note"], ["i.txt"]),
    ]
    assert (codes["g.bin"], codes["h.docx"]) == (Code.NO_CONVERTER, Code.CONVERSION_FAILED)
    assert left_in_the_cache(files.folder) == []


def test_e6_file_when_its_conversion_takes_too_much_memory_then_is_kept_as_it_was_and_explain_says_so(
    tmp_path: Path,
) -> None:
    files = FileProject(tmp_path, fetch={"max_bytes": 1 << 30})
    files.fill({"a.json": '{"a": "a list of quinces"}'})
    files.crawl()
    files.fill({"a.json": b"[" + b"[]," * (9 * MB) + b"0]"})
    files.crawl()

    assert files.rows()["a.json"][0] == Code.CONVERSION_LIMIT
    assert files.found("quinces") == ["a.json"]
    said = files.command("explain", files.identify("a.json"))
    assert (
        "in the index as it was, and the last visit brought nothing better: 904, its conversion passed a limit" in said
    )


@pytest.mark.soak
def test_e6_data_when_it_has_200_mb_then_no_process_takes_memory_of_its_size(tmp_path: Path, forks: Forks) -> None:
    peaks = {}
    for megabytes in (1, 200):
        (tmp_path / str(megabytes)).mkdir()
        files = FileProject(tmp_path / str(megabytes), fetch={"max_bytes": 1 << 30})
        files.fill({
            "a.csv": b"a row of quinces" + (b"," * 1023 + b"\n") * (megabytes << 10),
            "b.xml": b"<a>an element of medlars" + (b"<b c='" + b"x" * 1014 + b"'/>\n") * (megabytes << 10) + b"</a>",
        })  # fmt: skip
        files.settle()
        peaks[megabytes] = run_measured(forks, files.folder, "crawl", "files")

        assert files.found("quinces OR medlars") == ["a.csv", "b.xml"], files.rows()
    for process, megabytes in peaks[200].items():
        assert megabytes < peaks[1][process] + MOST_MORE_MEGABYTES, peaks


@pytest.fixture
def large(tmp_path: Path) -> FileProject:
    """A large file, and one that is not."""
    files = FileProject(tmp_path, file={"inline_mb": 1})
    files.fill({"small.txt": "a text about plums", "large.pdf": large_pdf("pages about quinces", 3)})
    return files


def test_e6_file_when_it_was_read_then_all_that_reads_the_cache_can_do_with_it(large: FileProject) -> None:
    large.crawl()
    again = large.crawl()
    large.edit(file={"inline_mb": 1}, keep={"exclude_mime_types": ["text/plain"]})
    large.command("apply", large.ask("plan", "files")["plan"])

    assert again["fetched"] == 0
    assert large.found("quinces") == ["large.pdf"]
    assert "verify" not in large.command("verify", "files")
    assert "large.pdf" in large.command("explain", large.identify("large.pdf"))


def test_e6_file_when_killed_while_it_goes_to_the_disk_then_nothing_is_left_and_the_next_run_has_it(
    large: FileProject,
) -> None:
    large.crawl(code=-signal.SIGKILL, SEARCHCRAWL_FAILPOINT="body.spooled:2")
    left = left_in_the_cache(large.folder)
    large.crawl()

    assert left == []
    assert large.found("quinces") == ["large.pdf"]


def test_e6_file_when_the_disk_is_full_then_it_alone_fails_and_the_next_run_has_it(large: FileProject) -> None:
    large.crawl()
    large.fill({"large.pdf": large_pdf("pages about medlars", 3), "small.txt": "a text about damsons"})
    large.crawl(SEARCHCRAWL_FAILPOINT="body.spooled:enospc")
    (row,) = query_columns(large.folder, f"SELECT error FROM urls WHERE code = {int(Code.READ_ERROR)}")
    kept = large.found("quinces OR damsons")
    large.crawl()

    assert "no large body can be put there" in row["error"]
    assert kept == ["large.pdf", "small.txt"]
    assert large.found("medlars") == ["large.pdf"]


@pytest.fixture(scope="module")
def mounting(part_missing: Callable[[str], NoReturn]) -> None:
    if not may_mount():
        part_missing("only root of this machine, with unshare and nsenter of util-linux, may mount small disks")


@pytest.mark.usefixtures("mounting")
def test_e6_file_when_it_would_take_of_what_is_kept_free_then_it_alone_is_read_later(large: FileProject) -> None:
    large.crawl()
    large.fill({"large.pdf": large_pdf("pages about medlars", 9), "small.txt": "a text about damsons"})
    large.settle()
    with small_disk(large.folder / "var" / "cache", ROOM) as disk:
        disk.fill()
        disk.leave(20 << 10)
        short = disk.searchcrawl(large.folder, "crawl", "files", "-s", "SEARCHCRAWL_MIN_FREE_MB=14")
        (row,) = query_columns(large.folder, "SELECT code, error FROM urls WHERE url LIKE '%large.pdf'")
        kept = large.found("quinces OR damsons")
        disk.grow(ROOM)
        last = disk.searchcrawl(large.folder, "crawl", "files", "-s", "SEARCHCRAWL_MIN_FREE_MB=14")

    assert (short.returncode, last.returncode) == (0, 0), short.stderr
    assert row["code"] == Code.READ_ERROR
    assert "14 MB of its disk are kept free (SEARCHCRAWL_MIN_FREE_MB)" in row["error"]
    assert kept == ["large.pdf", "small.txt"]
    assert large.found("medlars") == ["large.pdf"]


@pytest.mark.usefixtures("mounting")
def test_e6_page_when_it_would_take_of_what_is_kept_free_then_it_alone_is_fetched_later(
    site: SiteProcess, tmp_path: Path
) -> None:
    made = of_pages(site, tmp_path / "project", {"/large": large_pdf("pages about quinces", 9)}, retries=0)
    with small_disk(made.folder / "var" / "cache", 20 << 10) as disk:
        disk.searchcrawl(made.folder, "crawl", "demo", "-s", "SEARCHCRAWL_MIN_FREE_MB=14")
        short = made.codes()
        disk.grow(ROOM)
        disk.searchcrawl(made.folder, "crawl", "demo", "-s", "SEARCHCRAWL_MIN_FREE_MB=14")

    assert short == {f"{HOST}/": 200, f"{HOST}/large": Code.READ_ERROR}
    assert made.found("quinces") == [f"{HOST}/large"]


def of_pages(site: SiteProcess, folder: Path, bodies: dict[str, bytes], **fetch: Any) -> CrawlProject:
    """A site of these pages; those that are no HTML have no type that says so."""
    folder.mkdir(exist_ok=True)
    site.set_page(HOST, "/", page("start", *bodies))
    for path, body in bodies.items():
        fields: dict[str, Any] = {"encoding": "gzip"} if path.endswith(".html") else {"content_type": None}
        site.set_page(HOST, path, body, **fields)
    return new_project(folder, site, **source(site, HOST, **FETCH, **fetch))


@pytest.mark.parametrize("processes", [1, 2])
def test_e6_pages_when_they_are_large_then_are_found_and_processed_again_without_a_request(
    site: SiteProcess, tmp_path: Path, processes: int
) -> None:
    write_large_zip(tmp_path / "b.zip", "what an archive says of medlars", 9)
    bodies = {
        "/a.html": large_page("a page about rowans", 10, "/linked.html"),
        "/b": (tmp_path / "b.zip").read_bytes(),
        "/c": large_pdf("pages about quinces", 9),
    }
    site.set_page(HOST, "/linked.html", page("linked"))
    made = of_pages(site, tmp_path / "project", bodies, processes=processes)
    first = made.crawl()
    words = ("rowans", "medlars", "quinces", "linked")
    before = [made.found(word) for word in words]
    site.clear_log()
    made.edit(**source(site, HOST, **FETCH), keep={"max_age_days": 40_000})
    made.ask("apply", made.ask("plan", "demo")["plan"])
    requests = site.log()
    again = made.crawl()

    assert first.exit_code == 0, made.rows()
    assert before == [[f"{HOST}/a.html"], [f"{HOST}/b!/inner.txt"], [f"{HOST}/c"], [f"{HOST}/linked.html"]]
    assert requests == []
    assert (again.counts["changed"], again.counts["new"]) == (0, 0)
    assert [made.found(word) for word in words] == before
    assert left_in_the_cache(made.folder) == []
