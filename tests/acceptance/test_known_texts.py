"""Files whose permissions or places alone change: their bodies are not read, or not by a converter once more (A1)."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import searchcrawl
from tests import backends
from tests.acceptance.support_files import FileProject
from tests.final_state import read_state
from tests.office_files import make_docx, make_zip
from tests.read_watch import ReadWatch
from tests.site.pdf import make_pdf

FILES: dict[str, str | bytes] = {
    "c/a.txt": "apples are red and good to eat",
    "c/b.html": "<html lang=en><head><title>Pears</title><meta name=author content=Eve></head><body><p>pears are green",
    "c/e/c.pdf": make_pdf("Plums are blue, and grow on trees.", title="On plums"),
    "c/e/d.docx": make_docx(b"<w:p><w:r><w:t>cherries are dark red, and small</w:t></w:r></w:p>"),
    "c/e/f.csv": "fruit,price\nquince,3\nmedlar,4\n",
    "c/e/g.xml": "<notes><note>figs are grown in the south</note></notes>",
    "c/e/h.html": "<html><head><title>Nuts</title></head><body><p>walnuts have shells</body></html>",
}
ATTRIBUTES = {"meta:author": "author", "file:path": "path", "file:owner": "keeper"}


@pytest.fixture
def files() -> Iterator[FileProject]:
    # Everybody may pass the folders above.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    project = FileProject(folder, attributes=ATTRIBUTES)
    project.fill(FILES)
    yield project
    shutil.rmtree(folder)


def sees(files: FileProject, user: str, words: str = "*") -> list[str]:
    """The paths of the files that a user finds."""
    hits = searchcrawl.open_project(files.folder).search(words, rows=100, as_user=user).hits
    return sorted(files.name(hit.url) for hit in hits)


def find_differences_from_first_crawl(files: FileProject) -> list[str]:
    """What index and cache have of the files otherwise than after a first crawl of the same ones."""
    found = read_state(files.folder, "files")
    if backends.current.solr is not None:
        # It gives fields back in another form, and keeps what it has.
        return list(found.broken)
    (files.folder / "searchcrawl.toml").write_text('contact = "https://example.com/"\n', "utf-8")
    shutil.rmtree(files.folder / "var")
    files.crawl()
    expected = read_state(files.folder, "files")
    assert not found.broken
    # The cache may still have what has left.
    pairs = [(found.index.get(url), expected.index.get(url), url) for url in {**found.index, **expected.index}]
    pairs += [(found.cache.get(url), digest, url) for url, digest in expected.cache.items()]
    return [f"{url}: {one} instead of {other}" for one, other, url in pairs if one != other]


@pytest.mark.matrix
def test_folder_when_its_permissions_change_then_the_index_follows_and_no_file_in_it_is_read(
    files: FileProject,
) -> None:
    files.crawl()
    before = sees(files, "nobody")
    with ReadWatch(files.root) as watch:
        (files.root / "c" / "e").chmod(0o700)
        counts = files.crawl()
        read = watch.take()
        (files.root / "c" / "a.txt").write_text("apples are yellow now")
        files.crawl()
        then = watch.take()

    assert before == sorted(FILES)
    assert (counts["changed"], counts["not_converted"], counts["fetched"], read) == (5, 5, 5, [])
    assert then == ["c/a.txt"]
    assert sees(files, "nobody") == ["c/a.txt", "c/b.html"]
    assert sees(files, "root") == sorted(FILES)
    assert find_differences_from_first_crawl(files) == []


def test_file_when_its_mode_changes_then_its_bytes_are_compared_and_not_converted(files: FileProject) -> None:
    files.crawl()
    (files.root / "c/e/c.pdf").chmod(0o600)
    counts = files.crawl()
    path = files.root / "c/a.txt"
    facts = path.stat()
    path.write_text("apples are odd and good to eat")
    path.chmod(0o600)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    changed = files.crawl()

    assert (counts["changed"], counts["not_converted"], counts["fetched"]) == (1, 1, 1)
    assert "c/e/c.pdf" not in sees(files, "nobody")
    # Nothing is missed that was changed with it.
    assert (changed["changed"], changed["not_converted"]) == (1, 0)
    assert sees(files, "root", "odd") == ["c/a.txt"]
    assert sees(files, "nobody", "odd OR apples") == []


@pytest.mark.matrix
def test_folder_when_it_is_renamed_then_its_texts_come_from_the_cache_and_are_as_if_they_were_read(
    files: FileProject,
) -> None:
    files.fill({f"c/many/{number}.txt": f"this is file number {number % 9} of a folder" for number in range(40)})
    files.crawl()
    (files.root / "c").rename(files.root / "moved")
    (files.root / "moved/e/f.csv").rename(files.root / "moved/prices.csv")
    (files.root / "moved/a.txt").rename(files.root / "moved/fruit.text")
    counts = files.crawl()
    hits = files.ask("search", "quince", "--source", "files")["hits"]

    assert (counts["not_converted"], counts["fetch_failures"], counts["deleted"]) == (47, 0, 0)
    assert [(hit["title"], files.name(hit["url"])) for hit in hits] == [("prices.csv", "moved/prices.csv")]
    assert [name for name in files.indexed() if not name.startswith("moved/")] == []
    assert find_differences_from_first_crawl(files) == []


def test_file_when_it_moves_where_others_may_see_it_then_it_has_their_permissions(files: FileProject) -> None:
    (files.root / "closed").mkdir(mode=0o700)
    files.crawl()
    (files.root / "c/e/c.pdf").rename(files.root / "closed/c.pdf")
    (files.root / "c/a.txt").rename(files.root / "closed/a.txt")
    counts = files.crawl()

    assert counts["not_converted"] == 2
    assert sees(files, "nobody", "plums OR apples") == []
    assert sees(files, "root", "plums OR apples") == ["closed/a.txt", "closed/c.pdf"]
    assert find_differences_from_first_crawl(files) == []


def test_archive_when_its_folder_is_closed_then_so_are_the_files_in_it(files: FileProject) -> None:
    files.fill({"c/e/box.zip": make_zip({"in.txt": b"olives are in a box"})})
    files.crawl()
    before = sees(files, "nobody", "olives")
    (files.root / "c" / "e").chmod(0o700)
    files.crawl()

    assert before == ["c/e/box.zip!/in.txt"]
    assert sees(files, "nobody", "olives") == []
    assert sees(files, "root", "olives") == ["c/e/box.zip!/in.txt"]


def test_folder_when_the_cache_has_lost_its_records_then_it_is_read_after_all(files: FileProject) -> None:
    files.crawl()
    for segment in (files.folder / "var" / "cache" / "files").iterdir():
        segment.unlink()
    (files.root / "c" / "e").chmod(0o700)
    counts = files.crawl()

    assert (counts["not_converted"], counts["fetched"], counts["fetch_failures"]) == (0, 5, 0)
    assert sees(files, "nobody") == ["c/a.txt", "c/b.html"]
    assert sees(files, "root", "plums") == ["c/e/c.pdf"]


def test_folder_when_it_is_renamed_with_an_edit_then_its_files_are_read_as_the_edit_says(files: FileProject) -> None:
    files.crawl()
    files.edit(attributes={**ATTRIBUTES, "meta:author": "writer"}, content={"language": "fr"})
    (files.root / "c").rename(files.root / "moved")
    counts = files.crawl()
    (files.root / "moved").rename(files.root / "again")
    then = files.crawl()

    assert (counts["not_converted"], then["not_converted"]) == (0, len(FILES))
    assert find_differences_from_first_crawl(files) == []


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "failpoint", ["links.committed", "listing.end", "row.updated:2", "segment.synced:2", "batch.sealed"]
)
def test_crawl_when_it_is_killed_after_a_move_and_a_change_of_permissions_then_the_next_one_ends_as_an_undisturbed_one(
    files: FileProject, failpoint: str
) -> None:
    files.crawl()
    (files.root / "c/e").chmod(0o700)
    (files.root / "c/a.txt").rename(files.root / "a.txt")
    files.crawl(code=-signal.SIGKILL, SEARCHCRAWL_FAILPOINT=failpoint)
    files.crawl()

    assert sees(files, "nobody") == ["a.txt", "c/b.html"]
    files.command("verify", "files")
    assert find_differences_from_first_crawl(files) == []


def test_folder_when_several_processes_read_it_then_its_texts_come_from_the_cache_as_well(files: FileProject) -> None:
    files.edit(attributes=ATTRIBUTES, fetch={"processes": 2})
    files.crawl()
    (files.root / "c").rename(files.root / "moved")
    moved = files.crawl()
    (files.root / "moved").chmod(0o700)
    closed = files.crawl()

    assert (moved["not_converted"], closed["not_converted"], closed["changed"]) == (len(FILES),) * 3
    assert sees(files, "nobody") == []
    assert find_differences_from_first_crawl(files) == []


def test_large_file_when_its_folder_is_closed_and_it_moves_then_its_text_comes_from_the_cache(
    files: FileProject,
) -> None:
    files.edit(file={"inline_mb": 1}, attributes=ATTRIBUTES)
    files.fill({"l/large.txt": "medlars are bletted\n" * 80_000})
    files.crawl()
    (files.root / "l").chmod(0o700)
    with ReadWatch(files.root / "l") as watch:
        closed = files.crawl()
        read = watch.take()
    (files.root / "l/large.txt").rename(files.root / "larger.txt")
    moved = files.crawl()

    assert (closed["changed"], closed["not_converted"], read) == (1, 1, [])
    assert (moved["not_converted"], moved["fetch_failures"]) == (1, 0)
    assert sees(files, "nobody", "medlars") == ["larger.txt"]
    assert find_differences_from_first_crawl(files) == []
