"""The schema of the embedded index, and numbers among attributes as it keeps them."""

from __future__ import annotations

import itertools
import json
import math
import unicodedata
from pathlib import Path

import pytest

from searchcrawl.index.local.schema import decode_number, encode_number, open_index, prepare_text
from tests.growth import assert_linear

# Each name with its type: an index that was made with other fields, or in another order, cannot be opened.
EXISTING = [
    "id text", "stored bytes", "tombstone bool", "title text", "content text", "description text", "author text",
    "subject text", "anchor text", "url_words text", "host_words text", "mimetype_words text", "language_words text",
    "languages_words text",
    *(f"{name}_txt_{code} text"
      for code in ["da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ro", "ru", "sv", "ja", "ko", "zh"] for name in ("title", "content")),
    "source text", "groups text", "host text", "url text", "access_url text", "duplicates text", "mimetype text",
    "language text", "languages text", "checksum text", "acl_allow text", "acl_deny text",
    "acl_path text", "title_exact text", "description_exact text", "author_exact text",
    "subject_exact text", "depth i64", "content_length i64", "crawl_version i64", "last_modified date",
    "first_seen date", "crawled_at date", "attribute_words json_object", "attributes json_object",
    "ranges json_object",
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


MARKS = {"two kinds": "\u0301\u0323", "one": "\u0301", "double": "\u0344", "with variations": "\u0323\ufe0f\u0301"}


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
def test_r13_text_when_its_letters_have_endless_marks_then_preparing_it_takes_linear_time(marks: str) -> None:
    assert_linear(prepare_text, lambda count: "a" + marks * count, smallest=1_000, largest=256_000)


def test_text_when_its_letters_have_few_marks_then_all_of_them_count() -> None:
    marked = "a" + "\u0323\u0301" * 15

    assert prepare_text(marked) == unicodedata.normalize("NFKC", marked)
    assert prepare_text(f"{marked}\u0301") == prepare_text(marked)
    assert prepare_text("e\u0301 " * 1_000) == "\xe9 " * 1_000
