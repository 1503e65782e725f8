"""A further kind of source, as ``docs/how-to/add-kind.md`` has it: a package with a handler and a spider, and a line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.support_rooms import Extended

#: The line in ``KINDS``.
LINES: Final = "import memos\nfrom searchcrawl.kinds import registry\n\nregistry.KINDS['memo'] = memos.MEMO\n"


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
