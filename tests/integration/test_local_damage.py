"""An embedded index with a damaged file: each question names the folder and what mends it, whatever the library raises."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from searchcrawl.exceptions import IndexMisconfigured
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import SearchQuery
from tests.local_index import batch, document


@pytest.mark.parametrize("suffix", ["idx", "term", "fast", "store"])
def test_index_when_the_inside_of_a_file_is_damaged_then_it_says_what_to_do(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "index"
    with_words = [
        document(f"{number:04}", " ".join(f"word{number * each}" for each in range(99))) for number in range(500)
    ]
    LocalReceiver(folder).deliver(batch(1, *with_words))
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
        lambda: receiver.find_highest_version("demo"),
        lambda: list(receiver.scan("demo")),
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
