"""Values and ids that an index cannot take as they are, in both indexes: cleaned, cut, or the document is named (X-I9, X-I10)."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final

from searchcrawl.index.receiver import Receipt, SearchIndex, SearchQuery
from tests.index_documents import batch, document

#: 40 KB, as one word and of two bytes a character, and as one that a cut may hit in its middle.
LONG: Final = ("x" * 40_000, "é" * 20_000, "x" + "日" * 14_000)
TEXTS: Final = ("title", "description", "author", "subject", "content", "note_t")
NAMES: Final = ("mimetype", "language", "url", "access_url", "host", "checksum", "color_s")
LISTS: Final = ("groups", "duplicates", "colors_s")
ODD: Final[dict[str, Any]] = {
    "nul": {"title": "a\x00b", "mimetype": "text/\x00html", "color_s": "\x00"},
    "surrogates": {"title": "a\ud800b", "author": "\udfff", "color_s": "\ud800", "content": "x" * 600 + "\ud800"},
    "bytes": {"title": b"caf\xc3\xa9 \xff", "color_s": b"\x00\xff"},
    "not-a-number": {"size_l": math.nan},
    "infinite": {"size_l": [math.inf, -math.inf, 1.5]},
    "too-big": {"size_l": 2**70, "content_length": 2**63},
    "decimal": {"color_s": Decimal("1.5")},
    "moment": {"last_modified": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=9)))},
    "naive-moment": {"seen_dt": datetime(2026, 1, 2)},  # noqa: DTZ001 - the zone is missing on purpose
    "day": {"seen_dt": date(2026, 1, 2)},
    "first-moment": {"last_modified": datetime(1, 1, 1, tzinfo=UTC)},
    "last-moment": {"last_modified": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)},
    "none": {"title": None, "groups": [None, "g"]},
    "empty": {"title": "", "groups": [], "color_s": ""},
    "blank": {"title": " ", "color_s": " \t"},
    "mark": {"title": "\ue000a\ue001", "color_s": "\uffff"},
    # Of the id alone.
    "site:0!a/b c": {},
    "many": {"duplicates": [f"http://example.com/{number}" for number in range(5000)]},
}


def in_index(index: SearchIndex) -> list[str]:
    index.commit()
    return [entry.id for entry in index.scan(None)]


def test_i9_deliver_when_values_are_odd_then_every_document_goes_in(index: SearchIndex) -> None:
    documents = [document(name, **{"content": "word", **fields}) for name, fields in ODD.items()]

    receipts = index.deliver(batch(*documents))

    assert receipts == [Receipt(name, True) for name in ODD]
    assert in_index(index) == sorted(ODD)


def test_i9_deliver_when_values_are_longer_than_a_term_then_every_document_goes_in(index: SearchIndex) -> None:
    documents = [
        document(f"{name}-{number}", **{name: value}) for number, value in enumerate(LONG) for name in (*TEXTS, *NAMES)
    ]
    documents += [document(f"{name}-list", **{name: list(LONG)}) for name in LISTS]

    receipts = index.deliver(batch(*documents))

    assert [receipt for receipt in receipts if not receipt.accepted] == []
    assert in_index(index) == sorted(each.id for each in documents)


def test_i9_deliver_when_a_value_does_not_fit_its_field_then_its_document_is_named_and_the_others_are_in(
    index: SearchIndex,
) -> None:
    receipts = index.deliver(batch(document("a", depth=1), document("b", depth="none"), document("c", depth=2)))

    assert [(receipt.id, receipt.accepted) for receipt in receipts] == [("a", True), ("b", False), ("c", True)]
    assert "none" in str(receipts[1].error)
    assert in_index(index) == ["a", "c"]


def test_i9_deliver_when_ids_cannot_be_stored_then_they_are_refused_and_the_others_are_in(index: SearchIndex) -> None:
    bad = ("", " ", "a\x00", "a\ud800", "x" * 40_000)

    receipts = index.deliver(batch(document("a"), *(document(each) for each in bad), document("c"), removed=bad))

    assert [receipt.accepted for receipt in receipts] == [True, *[False] * 5, True, *[False] * 5]
    assert in_index(index) == ["a", "c"]


def test_i10_deliver_when_removals_look_like_queries_then_nothing_else_goes(index: SearchIndex) -> None:
    index.deliver(batch(document("a", content="word"), document("b", content="word")))
    index.commit()

    index.deliver(batch(version=2, removed=("*:*", "*", "id:*", "source:site", '{"query":"*:*"}', "a OR b", "")))

    assert in_index(index) == ["a", "b"]
    assert index.search(SearchQuery(words="word")).total == 2


def test_i10_deliver_when_a_removal_has_an_old_version_then_the_document_stays(index: SearchIndex) -> None:
    index.deliver(batch(document("a"), version=5))

    index.deliver(batch(version=4, removed=("a",)))

    assert in_index(index) == ["a"]
