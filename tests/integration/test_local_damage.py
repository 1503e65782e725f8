"""An embedded index with a damaged file: each question names the folder and what mends it, whatever the library raises."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from searchcrawl.exceptions import IndexMisconfigured
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import SearchQuery
from tests.index_documents import batch, document
from tests.site.client import ROOT


def run_code(code: str) -> str:
    """What a program prints; it must end well."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("suffix", ["idx", "term", "fast", "store"])
def test_index_when_the_inside_of_a_file_is_damaged_then_it_says_what_to_do(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "index"
    with_words = [
        document(f"{number:04}", content=" ".join(f"word{number * each}" for each in range(99)))
        for number in range(500)
    ]
    LocalReceiver(folder).deliver(batch(*with_words))
    for file in folder.glob(f"*.{suffix}"):
        data = bytearray(file.read_bytes())
        data[20 : len(data) // 2 : 7] = bytes(0xA5 for _ in data[20 : len(data) // 2 : 7])
        file.write_bytes(data)
    receiver = LocalReceiver(folder)
    ids = [each.id for each in with_words]
    questions = [
        lambda: receiver.search(SearchQuery(words="word1* OR word7", rows=500, facets=["source"])),
        lambda: receiver.search(SearchQuery(words='"word7 word14"', rows=500, sort="title")),
        lambda: receiver.find_versions(ids),
        lambda: receiver.find_highest_version("site"),
        lambda: list(receiver.scan("site")),
        lambda: receiver.find_spellings("wordy"),
    ]

    said = []
    for ask in questions:
        with suppress(IndexMisconfigured):
            ask()
            continue
        with pytest.raises(IndexMisconfigured, match="searchcrawl resend") as refused:
            ask()
        said.append(str(refused.value))

    assert all(str(folder) in text for text in said)
    assert said


def test_index_when_its_disk_refuses_what_the_library_opens_then_nothing_says_that_it_is_damaged(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "index"
    LocalReceiver(folder).deliver(batch(document("a", content="word")))
    lock = folder / ".tantivy-meta.lock"
    lock.unlink()
    # As on a disk that became read-only: the library gives the error of the system in a text of its own.
    lock.symlink_to(lock)

    for ask in (lambda each: each.search(SearchQuery(words="word")), lambda each: each.deliver(batch(version=2))):
        with pytest.raises(IndexMisconfigured) as refused:
            ask(LocalReceiver(folder))
        assert str(refused.value) == f"searchcrawl.toml: index.path: {folder}: Too many levels of symbolic links"


def test_index_when_no_more_files_can_be_opened_then_it_is_away_and_not_damaged(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    LocalReceiver(folder).deliver(batch(document("a", content="word")))
    code = f"""
import os, resource
from pathlib import Path
from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import SearchQuery
receiver = LocalReceiver(Path({str(folder)!r}))
receiver.search(SearchQuery(words="word"))
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
held = []
try:
    while True:
        held.append(os.dup(0))
except OSError:
    for each in held[:{{spare}}]:
        os.close(each)
try:
    LocalReceiver(Path({str(folder)!r})).search(SearchQuery(words="word"))
except IndexUnavailable as error:
    print(error)
"""

    said = [run_code(code.format(spare=spare)) for spare in range(4)]

    assert any("Too many open files" in text for text in said)
