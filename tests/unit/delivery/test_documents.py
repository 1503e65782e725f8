"""What a record of the cache becomes in the index: attributes and the analysis by language ."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from searchcrawl.delivery.documents import build_indexed_document
from searchcrawl.rules.rewriting import DisplayMap
from searchcrawl.store.batch_table import BatchDocument
from searchcrawl.store.documents.duplicate_key_table import Copy

ROW = BatchDocument(
    url_id=1, url="http://site.test/a", depth=0, segment=1, record_offset=0, response_bytes=0, fields_bytes=0,
    fields_digest=bytes(32), mimetype="text/html", content_length=1, last_modified="Tue, 05 Mar 2024 10:11:12 GMT",
    first_seen_ms=0, last_fetched_ms=0,
)  # fmt: skip


def fields(**record: Any) -> dict[str, Any]:
    return dict(build_indexed_document(ROW, record, source="site", duplicates=()).fields)


def test_fields_when_a_record_has_attributes_then_they_are_fields_and_may_fill_fixed_ones() -> None:
    made = fields(
        title="t",
        attributes={"version_s": ["1", "2"], "last_modified": "2020-01-01T00:00:00Z", "mimetype": "application/x-mine"},
    )

    assert made["version_s"] == ["1", "2"]
    assert made["last_modified"] == "2020-01-01T00:00:00Z"
    assert made["mimetype"] == "application/x-mine"


@pytest.mark.parametrize("display", [None, DisplayMap(())], ids=["as-it-is", "mapped"])
def test_duplicates_when_several_sources_have_a_url_then_it_is_listed_once_and_that_of_the_document_not_at_all(
    display: DisplayMap | None,
) -> None:
    copies = [Copy("http://site.test/b", source_id=1), Copy("http://site.test/a"), Copy("http://site.test/b")]

    made = build_indexed_document(ROW, {"title": "t"}, source="site", duplicates=copies, display=display).fields

    assert made["duplicates"] == ["http://site.test/b"]


@pytest.mark.parametrize(
    ("header", "of_file", "expected"),
    [
        ("Tue, 05 Mar 2024 10:11:12 GMT", "2020-01-01T00:00:00Z", datetime(2024, 3, 5, 10, 11, 12, tzinfo=UTC)),
        (None, "2020-01-01T02:00:00+02:00", datetime(2020, 1, 1, tzinfo=UTC)),
        ("no date", "2020-01-01T00:00:00Z", datetime(2020, 1, 1, tzinfo=UTC)),
        # What programs write that know no date.
        (None, "1601-01-01T00:00:00Z", None),
        (None, "9000-01-01T00:00:00Z", None),
        (None, "yesterday", None),
        (None, None, None),
    ],
)
def test_date_when_the_server_names_none_then_is_that_of_the_file(
    header: str | None, of_file: str | None, expected: datetime | None
) -> None:
    record = {"title": "t"} | ({} if of_file is None else {"modified": of_file})
    row = ROW._replace(last_modified=header)

    made = build_indexed_document(row, record, source="site", duplicates=()).fields

    assert made.get("last_modified") == expected


@pytest.mark.parametrize(
    ("language", "suffix"),
    [("de", "de"), ("pt-br", "pt"), ("zh-hant-tw", "zh"), ("", None), ("klingon", None), ("x", None)],
)
def test_fields_when_the_language_is_known_then_title_and_content_are_there_for_its_analysis(
    language: str, suffix: str | None
) -> None:
    made = fields(title="t", content="c", language=language)

    found = {name: value for name, value in made.items() if "_txt_" in name}
    assert found == ({} if suffix is None else {f"title_txt_{suffix}": "t", f"content_txt_{suffix}": "c"})
