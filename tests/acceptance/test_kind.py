"""A further kind of source, as ``docs/how-to/add-kind.md`` has it: a package with a handler and a spider, and a line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import environment
from tests.crawl_forks import PAUSE
from tests.site.client import ROOT

GUIDE: Final = ROOT / "docs" / "how-to" / "add-kind.md"
#: What the line in ``KINDS`` does.
RUN: Final = """
import sys

import memos
from searchcrawl import kinds

kinds.KINDS["memo"] = memos.MEMO

from searchcrawl.__main__ import main

sys.argv[0] = "searchcrawl"
main()
"""
_BLOCK: Final = re.compile(r'^```\{code-block\} \w+\n:caption: "([^"]+)"\n\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Memos:
    """A project with a source of the guide's kind, and the folder that it reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.box = folder / "box"
        self.box.mkdir()
        (folder / "sources").mkdir()
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = searchcrawl.settings\n", "utf-8")
        (folder / "searchcrawl.toml").write_text('contact = "https://example.com/"\n', "utf-8")
        for path, text in _BLOCK.findall(GUIDE.read_text("utf-8")):
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text.replace("/srv/notes", str(self.box)), "utf-8")
        (folder / "run.py").write_text(RUN, "utf-8")

    def put(self, **memos: str) -> None:
        for name, text in memos.items():
            (self.box / f"{name}.txt").write_text(text, "utf-8")

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "run.py", *arguments],
            cwd=self.folder,
            env=environment(**{"PYTHONPATH": os.pathsep.join((str(ROOT), str(self.folder))), PAUSE: "0.01"}),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def crawl(self) -> dict[str, Any]:
        ended = self.command("crawl", "notes", "--json")
        assert ended.returncode == 0, ended.stderr
        counts: dict[str, Any] = json.loads(ended.stdout)["counts"]
        return counts

    def found(self, words: str) -> list[str]:
        ended = self.command("search", words, "--source", "notes", "--json")
        assert ended.returncode == 0, ended.stderr
        return sorted(hit["url"] for hit in json.loads(ended.stdout)["hits"])


@pytest.fixture
def memos(tmp_path: Path) -> Memos:
    found = Memos(tmp_path)
    found.put(apples="apples are red", pears="pears are green")
    return found


def test_source_of_a_further_kind_when_crawled_then_its_documents_are_found(memos: Memos) -> None:
    counts = memos.crawl()

    assert (counts["new"], counts["fetched"]) == (2, 3)
    assert memos.found("apples") == ["memo://box/apples.txt"]
    assert memos.found("green") == ["memo://box/pears.txt"]


def test_source_of_a_further_kind_when_documents_change_come_and_go_then_the_index_is_as_they_are(memos: Memos) -> None:
    memos.crawl()
    memos.put(pears="pears are yellow", plums="plums are blue")
    (memos.box / "apples.txt").unlink()

    counts = memos.crawl()

    assert (counts["new"], counts["changed"], counts["deleted"]) == (1, 1, 1)
    assert memos.found("apples") == []
    assert memos.found("yellow") == ["memo://box/pears.txt"]
    assert memos.found("blue") == ["memo://box/plums.txt"]


def test_source_of_a_further_kind_when_nothing_changed_then_nothing_is_read(memos: Memos) -> None:
    memos.crawl()

    counts = memos.crawl()

    assert (counts["new"], counts["changed"], counts["deleted"], counts["not_modified"]) == (0, 0, 0, 2)


def test_source_of_a_further_kind_when_it_is_away_then_nothing_is_removed(memos: Memos) -> None:
    memos.crawl()
    memos.box.rename(memos.folder / "elsewhere")

    ended = memos.command("crawl", "notes", "--json")

    counts = json.loads(ended.stdout)["counts"]
    assert (ended.returncode, counts["deleted"], counts["fetch_failures"]) == (8, 0, 3)
    assert memos.found("apples") == ["memo://box/apples.txt"]


def test_urls_of_one_kind_when_named_in_a_source_of_another_then_the_file_is_refused(memos: Memos) -> None:
    (memos.folder / "sources" / "site.toml").write_text(
        '[start]\nurls = ["memo://box/"]\n\n[scope]\nallow_all = true\n', "utf-8"
    )

    ended = memos.command("sources", "check")

    assert ended.returncode == 4
    assert 'start.urls[0]: not an http or https URL (got "memo://box/")' in ended.stderr + ended.stdout


def test_explain_when_asked_about_a_document_of_a_further_kind_then_it_says_why(memos: Memos) -> None:
    memos.crawl()

    ended = memos.command("explain", "memo://box/pears.txt")

    assert ended.returncode == 0, ended.stderr
    assert "in the index" in ended.stdout
