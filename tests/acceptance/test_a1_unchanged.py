"""Runs in which nothing has changed: what they write, and what their end leaves out (A1, D2)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_files import FileProject
from tests.stored_rows import query
from tests.written_rows import count_writes, watch_writes

#: What a run notes of itself, and of each container that it has read.
_OF_RUNS: Final = {"leases", "runs", "segments", "sources"}
_LINE: Final = "<p>handbook of the orchard"


@pytest.fixture
def files(tmp_path: Path) -> FileProject:
    return FileProject(tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("folders", [1, 30])
def test_files_when_nothing_has_changed_then_a_run_writes_no_row_but_marks(files: FileProject, folders: int) -> None:
    files.fill({f"{number % folders}/{number}.txt": f"this is number {number} of many" for number in range(150)})
    files.fill({".hidden": "nobody reads this", "empty/.keep": ""})
    files.crawl()
    watch_writes(files.folder)
    second = files.crawl()
    written = count_writes(files.folder)
    files.fill({"0/0.txt": "another text"})
    files.crawl()

    assert (second["fetched"], second["indexed"], second["discovered"]) == (0, 0, 0)
    # All folders, the root, and that of the roots.
    assert written.pop("sitemaps") == folders + 3
    assert written.keys() <= _OF_RUNS
    assert max(written.values()) < 20
    # What is counted is all that is written.
    assert {"urls", "documents"} <= count_writes(files.folder).keys()


def build_pages(count: int) -> dict[str, str | bytes]:
    return {f"{n}.html": f"<title>Page {n}</title>{_LINE}<p>about apple number {n}" for n in range(count)}


@pytest.mark.parametrize("unchanged", [0, 1, 2])
def test_end_of_a_run_when_a_command_has_changed_documents_then_is_taken_whole(
    files: FileProject, unchanged: int
) -> None:
    files.fill(build_pages(11))
    files.crawl()
    for _ in range(unchanged):
        files.crawl()
    with_line = files.found("handbook")
    # So few pages have nothing that would be taken for what all pages of a host have.
    for name in ("0.html", "1.html"):
        files.command("forget", files.identify(name), "--yes")
    files.crawl()

    assert with_line == []
    assert files.found("handbook") == sorted(build_pages(11).keys() - {"0.html", "1.html"})


@pytest.mark.parametrize("failpoint", ["closing.step", "blocks.frozen"])
def test_end_of_a_run_when_it_is_killed_then_the_next_one_takes_it_again(files: FileProject, failpoint: str) -> None:
    files.fill(build_pages(11))
    files.crawl(code=-9, SEARCHCRAWL_FAILPOINT=failpoint)
    files.crawl()
    files.crawl()

    assert files.found("handbook") == []
    assert len(files.found("apple")) == 11


def test_end_of_a_run_when_a_key_that_it_depends_on_is_edited_then_is_taken_whole(files: FileProject) -> None:
    words = " ".join(f"word{number}" for number in range(300))
    twins: dict[str, str | bytes] = {f"{number}.txt": f"{words} {number}" for number in range(2)}
    files.fill(twins)
    files.crawl()
    files.crawl()
    files.edit(copies={"near": "remove"})
    files.crawl()
    removed = files.found()
    files.edit()
    files.crawl()

    assert len(removed) == 1
    assert files.found() == sorted(twins)
    assert query(files.folder, "SELECT count(*) FROM documents WHERE near_digest IS NOT NULL") == [(0,)]
