"""The schema of the embedded index, and numbers among attributes as it keeps them."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

from searchcrawl.index.local.schema import decode_number, encode_number, open_index

# Each name with its type: an index that was made with other fields, or in another order, cannot be opened.
EXISTING = [
    "id text", "stored bytes", "tombstone bool", "title text", "content text", "description text", "author text",
    "subject text", "anchor text", "url_words text", "host_words text", "mimetype_words text", "language_words text",
    "source text", "groups text", "host text", "url text", "access_url text", "duplicates text", "mimetype text",
    "language text", "checksum text", "title_exact text", "description_exact text", "author_exact text",
    "subject_exact text", "depth i64", "content_length i64", "crawl_version i64", "last_modified date",
    "first_seen date", "crawled_at date", "attribute_words json_object", "attributes json_object",
]  # fmt: skip


def test_schema_when_built_then_opens_the_indexes_that_exist(tmp_path: Path) -> None:
    open_index(tmp_path)

    entries = json.loads((tmp_path / "meta.json").read_text("utf-8"))["schema"]
    assert [f"{entry['name']} {entry['type']}" for entry in entries] == EXISTING


def test_numbers_when_encoded_then_they_sort_and_come_back() -> None:
    numbers = [-math.inf, -1e308, -2.5, -2, -1e-300, 0.0, 5e-324, 0.1, 1, 2.5, 10, 2.0**53, 1e308]

    written = [encode_number(number) for number in numbers]

    assert all(one < other for one, other in itertools.pairwise(written))
    assert [decode_number(digits) for digits in written] == numbers
    assert encode_number(-0.0) == encode_number(0.0)
