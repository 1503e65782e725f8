"""What developers add as guides have it: a kind of source (``docs/how-to/add-kind.md``), a cache (``docs/how-to/add-cache.md``)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_rooms import Extended
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess, write_project

#: The lines in ``KINDS``.
LINES: Final = """import memos
import shelves
from searchcrawl import kind

kind.KINDS["memo"] = memos.MEMO
kind.KINDS["shelf"] = shelves.SHELF
"""


class Memos(Extended):
    """A project with a source of the guide's kind, and the folder that it reads."""

    def __init__(self, folder: Path) -> None:
        self.box = folder / "box"
        self.box.mkdir()
        super().__init__(folder, "docs/how-to/add-kind.md", LINES, notes=str(self.box))
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", "utf-8")
        (folder / "searchcrawl.toml").write_text('contact = "https://example.com/"\n', "utf-8")

    def put(self, **memos: str) -> None:
        for name, text in memos.items():
            (self.box / f"{name}.txt").write_text(text, "utf-8")


@pytest.fixture
def memos(tmp_path: Path) -> Memos:
    found = Memos(tmp_path)
    found.put(apples="apples are red", pears="pears are green")
    return found


def test_source_of_a_further_kind_when_crawled_then_its_documents_are_found_and_explained_and_read_once(
    memos: Memos,
) -> None:
    ended, counts = memos.crawl("notes")
    explained = memos.command("explain", "memo://box/pears.txt")
    again, unchanged = memos.crawl("notes")

    assert (ended, counts["new"], counts["fetched"]) == (0, 2, 3)
    assert memos.found("notes", "apples") == ["memo://box/apples.txt"]
    assert memos.found("notes", "green") == ["memo://box/pears.txt"]
    assert explained.returncode == 0, explained.stderr
    assert "in the index" in explained.stdout
    assert "there is no robots.txt for a memo URL" in explained.stdout
    # Nothing changed.
    assert again == 0
    assert [unchanged[name] for name in ("new", "changed", "deleted", "not_modified")] == [0, 0, 0, 2]


def test_source_of_a_further_kind_when_documents_change_come_and_go_then_the_index_is_as_they_are(memos: Memos) -> None:
    memos.crawl("notes")
    memos.put(pears="pears are yellow", plums="plums are blue")
    (memos.box / "apples.txt").unlink()

    ended, counts = memos.crawl("notes")

    assert (ended, counts["new"], counts["changed"], counts["deleted"]) == (0, 1, 1, 1)
    assert memos.found("notes", "apples") == []
    assert memos.found("notes", "yellow") == ["memo://box/pears.txt"]
    assert memos.found("notes", "blue") == ["memo://box/plums.txt"]


def test_source_of_a_further_kind_when_it_is_away_then_nothing_is_removed(memos: Memos) -> None:
    memos.crawl("notes")
    memos.box.rename(memos.folder / "elsewhere")

    ended, counts = memos.crawl("notes")

    assert (ended, counts["deleted"], counts["fetch_failures"]) == (8, 0, 3)
    assert memos.found("notes", "apples") == ["memo://box/apples.txt"]


def test_urls_of_one_kind_when_named_in_a_source_of_another_then_the_file_is_refused(memos: Memos) -> None:
    (memos.folder / "sources" / "site.toml").write_text(
        '[start]\nurls = ["memo://box/"]\n\n[scope]\nallow_all = true\n', "utf-8"
    )

    ended = memos.command("sources", "check")

    assert ended.returncode == 4
    assert 'start.urls[0]: not an http or https URL (got "memo://box/")' in ended.stderr


HOST: Final = "objects.acme.test"
NAMES: Final = tuple("abcde")
#: What the lines in ``STORAGES`` and ``CACHE_LOCATIONS`` do; the objects are in a folder, one file each.
OBJECT_LINES: Final = """
import pathlib
import re

import objects
from searchcrawl.cache import opening
from searchcrawl.sources import project

_NAME = re.compile(r"(\\d{8})-(\\d{12})")


class Folder:
    def __init__(self, folder):
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, number, begin):
        if (self._folder.parent / "away").exists():
            raise ConnectionError("the store does not answer")
        return self._folder / f"{number:08d}-{begin:012d}"

    def put(self, number, begin, data):
        with self._path(number, begin).open("xb") as file:
            file.write(data)

    def get(self, number, begin):
        return self._path(number, begin).read_bytes()

    def delete(self, number, begin):
        self._path(number, begin).unlink(missing_ok=True)

    def list_parts(self, number):
        self._path(number, 0)
        found = sorted(self._folder.glob(f"{number:08d}-*"))
        return [(int(_NAME.fullmatch(path.name)[2]), path.stat().st_size) for path in found]

    def list_numbers(self):
        return sorted({int(_NAME.fullmatch(path.name)[1]) for path in self._folder.iterdir()})


def open_objects(opened, source):
    return objects.ObjectStorage(Folder(opened.root / "objects" / source))


opening.STORAGES["objects"] = open_objects
project.CACHE_LOCATIONS.append("objects")
"""


class Elsewhere(Extended):
    """A project whose cache is a store of objects."""

    def __init__(self, folder: Path, site: SiteProcess) -> None:
        write_project(folder, site, "demo", **source(site, HOST))
        super().__init__(folder, "docs/how-to/add-cache.md", OBJECT_LINES)
        file = folder / "searchcrawl.toml"
        file.write_text(f'{file.read_text("utf-8")}\n[cache]\nlocation = "objects"\nthreshold_mb = 0.001\n', "utf-8")
        self.objects = folder / "objects" / "demo"

    def plan(self) -> str:
        """What an edit comes to that is taken back again."""
        file = self.folder / "sources" / "demo.toml"
        text = file.read_text("utf-8")
        file.write_text(f'{text}\n[keep]\nexclude_urls = ["*/c.html"]\n', "utf-8")
        planned = self.command("plan", "demo")
        file.write_text(text, "utf-8")
        assert planned.returncode == 0, planned.stderr
        return planned.stdout

    def titles(self) -> list[str]:
        """The last parts of the URLs in the index."""
        return sorted(url.rpartition("/")[2] for url in self.found("demo", "*"))


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in NAMES)))
        for name in NAMES:
            site.set_page(HOST, f"/{name}.html", page(f"page {name}"))
        yield site


@pytest.fixture
def elsewhere(tmp_path: Path, site: SiteProcess) -> Elsewhere:
    return Elsewhere(tmp_path, site)


def names(*wanted: str) -> list[str]:
    return sorted(("", *(f"{name}.html" for name in wanted)))


def test_pages_when_the_cache_is_a_store_of_objects_then_the_index_is_as_the_site(
    elsewhere: Elsewhere, site: SiteProcess
) -> None:
    first, _ = elsewhere.crawl("demo")
    planned = elsewhere.plan()
    site.set_page(HOST, "/a.html", page("page a, changed"))
    site.delete_page(HOST, "/b.html")
    second, counts = elsewhere.crawl("demo")
    resent = elsewhere.command("resend", "demo", "--json")
    verified = elsewhere.command("verify", "demo", "--json")

    assert (first, second, counts["changed"], counts["deleted"]) == (0, 0, 1, 1)
    assert (resent.returncode, verified.returncode) == (0, 0), resent.stderr + verified.stderr
    assert elsewhere.titles() == names("a", "c", "d", "e")
    # An edit is tried on the pages of the cache.
    assert f"{HOST}" in planned
    assert "c.html" in planned
    assert not (elsewhere.folder / "var" / "cache" / "demo").exists()


@pytest.mark.few(1)
@pytest.mark.parametrize("failpoint", ["segment.append.mid:2", "segment.synced:2", "batch.sealed"])
def test_crawl_when_killed_between_the_store_of_objects_and_the_table_then_the_next_one_ends_well(
    elsewhere: Elsewhere, site: SiteProcess, failpoint: str
) -> None:
    killed = elsewhere.command("crawl", "demo", SEARCHCRAWL_FAILPOINT=failpoint)
    ended, _ = elsewhere.crawl("demo")

    assert (killed.returncode, ended) == (-signal.SIGKILL, 0)
    assert elsewhere.titles() == names(*NAMES)
    assert elsewhere.command("resend", "demo").returncode == 0
    assert elsewhere.command("verify", "demo").returncode == 0


def test_documents_when_their_objects_are_gone_then_they_are_fetched_again_and_nothing_is_removed(
    elsewhere: Elsewhere, site: SiteProcess
) -> None:
    elsewhere.crawl("demo")
    for part in elsewhere.objects.iterdir():
        part.unlink()
    elsewhere.command("resend", "demo")
    without = elsewhere.titles()
    ended, counts = elsewhere.crawl("demo")

    assert without == elsewhere.titles() == names(*NAMES)
    assert (ended, counts["deleted"]) == (0, 0)
    assert elsewhere.command("resend", "demo").returncode == 0


def test_documents_when_the_store_of_objects_is_away_then_nothing_counts_as_lost(
    elsewhere: Elsewhere, site: SiteProcess
) -> None:
    elsewhere.crawl("demo")
    (elsewhere.folder / "objects" / "away").touch()
    resent = elsewhere.command("resend", "demo")
    site.set_page(HOST, "/a.html", page("page a, changed"))
    away = elsewhere.command("crawl", "demo")
    (elsewhere.folder / "objects" / "away").unlink()
    ended, counts = elsewhere.crawl("demo")

    assert resent.returncode != 0
    assert away.returncode != 0
    assert (ended, counts["deleted"]) == (0, 0)
    assert elsewhere.titles() == names(*NAMES)
    assert elsewhere.command("verify", "demo").returncode == 0
