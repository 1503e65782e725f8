"""Hits in the shape of interface.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from searchcrawl.answers.searching import HIT_END, HIT_START, search, without_marks
from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.receiver import Batch, Hit, IndexEntry, Receipt, SearchAnswer, SearchQuery


class Deaf:
    """A receiver without answers."""

    def begin(self, source: str, run: int) -> None:
        pass

    def deliver(self, batch: Batch) -> list[Receipt]:
        return []

    def end(self, outcome: str) -> None:
        pass


class Oracle(Deaf):
    """A search index with one answer; ``asked`` is the last query."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        self.asked: SearchQuery | None = None

    def search(self, query: SearchQuery) -> SearchAnswer:
        self.asked = query
        snippet = f"a {HIT_START}word{HIT_END} here"
        hit = Hit(id="demo:0", score=1.5, snippet=snippet, fields=self.fields)
        return SearchAnswer(total=7, hits=[hit], facets={"host": {"a.example": 7}})

    def commit(self) -> None:
        pass

    def scan(self, source: str | None) -> Iterator[IndexEntry]:
        yield from ()

    def purge(self) -> int:
        return 0

    def ping(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_search_when_a_document_is_found_then_its_hit_has_the_promised_shape() -> None:
    oracle = Oracle(
        url="http://a.example/",
        title="A",
        source="demo",
        last_modified="2024-01-01T00:00:00Z",
        description="About A",
        duplicates=["http://b.example/"],
        content_length=3,
        author_s="Ann",
        price_l=3,
        issued_dt=["2024-01-01T00:00:00Z"],
        abstract_t="Text",
    )

    found = without_marks(search(oracle, SearchQuery(words="word")))

    assert found == {
        "total": 7,
        "hits": [
            {
                "url": "http://a.example/",
                "title": "A",
                "snippet": "a word here",
                "source": "demo",
                "score": 1.5,
                "last_modified": "2024-01-01T00:00:00Z",
                "description": "About A",
                "duplicates": ["http://b.example/"],
                "attributes": {"author": "Ann", "price": 3, "issued": ["2024-01-01T00:00:00Z"], "abstract": "Text"},
            }
        ],
        "facets": {"host": {"a.example": 7}},
    }


def test_search_when_a_document_has_few_fields_then_the_shape_stays() -> None:
    [hit] = search(Oracle(url="http://a.example/"), SearchQuery(words="word"))["hits"]

    assert (hit["title"], hit["description"], hit["last_modified"]) == ("", "", None)
    assert (hit["duplicates"], hit["attributes"]) == ([], {})
    assert hit["snippet"] == f"a {HIT_START}word{HIT_END} here"


@pytest.mark.parametrize(("sort", "asked"), [("score", None), ("-score", None), ("-depth", "-depth"), (None, None)])
def test_search_when_sorted_by_score_then_that_is_the_order_of_the_index(sort: str | None, asked: str | None) -> None:
    oracle = Oracle()

    search(oracle, SearchQuery(words="word", sort=sort))

    assert oracle.asked == SearchQuery(words="word", sort=asked)


def test_search_when_the_receiver_has_no_answers_then_refused() -> None:
    with pytest.raises(UnsupportedByIndex, match="Deaf cannot be searched"):
        search(Deaf(), SearchQuery(words="word"))
