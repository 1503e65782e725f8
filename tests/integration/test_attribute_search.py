"""Filters, orders and facets by attributes: both indexes answer alike (A5)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import SearchIndex, SearchQuery
from searchcrawl.index.solr.receiver import SolrReceiver
from searchcrawl.items import IndexedDocument
from tests.index_documents import found, listed, put

FIELDS = ["color_s", "dc.size_l", "note_t", "due_dt", "x-y_s", "mimetype", "host", "depth", "last_modified", "title"]


def documents() -> list[IndexedDocument]:
    """Some with several values, some with none, some with equal ones."""
    chance = random.Random(3)
    made = []
    for number in range(60):
        day = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=chance.randrange(20))
        fields: dict[str, Any] = {
            "source": "site", "url": f"http://a.test/{number}", "host": f"h{number % 3}.test", "depth": number % 4,
            "title": f"T{number % 7}", "mimetype": "text/html", "last_modified": day, "content": "shelf",
        }  # fmt: skip
        if number % 5:
            fields["color_s"] = chance.sample(
                ["red", "blue", "Grün", "2024-01-01T00:00:00+02:00"], chance.choice([1, 2])
            )
            fields["dc.size_l"] = chance.choice([0, 1, 2.5, -3, 1e20, [4, 1], 7])
            fields["x-y_s"] = f"v{chance.randrange(9)}"
        if number % 3:
            fields["note_t"] = chance.choice(["two words", "one", "Two Words"])
            fields["due_dt"] = (day + timedelta(days=number)).isoformat().replace("+00:00", "Z")
        made.append(IndexedDocument(id=f"site:{number:02}", fields=fields))
    return made


def told(index: SearchIndex) -> SearchIndex:
    # In parts: an index of several segments.
    for start in range(0, 60, 7):
        put(index, *documents()[start : start + 7])
    return index


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchIndex]:
    receiver = LocalReceiver(tmp_path_factory.mktemp("local") / "index")
    yield told(receiver)
    receiver.close()


def ids(index: SearchIndex, **asked: Any) -> list[str]:
    return listed(index, "shelf", **asked)


def key(fields: dict[str, Any], field: str, *, descending: bool) -> Any:
    """What a document counts by, as the promise has it: its first value in the order asked for."""
    values = fields.get(field)
    values = values if isinstance(values, list) else [values]
    return None if values == [None] else (max if descending else min)(values)


def expected(field: str, *, descending: bool) -> list[str]:
    with_value = [each for each in documents() if field in each.fields]
    # Equal ones by the id, whichever the direction.
    ordered = sorted(with_value, key=lambda each: each.id)
    ordered.sort(key=lambda each: key(dict(each.fields), field, descending=descending), reverse=descending)
    return [each.id for each in ordered] + sorted(each.id for each in documents() if field not in each.fields)


@pytest.mark.parametrize("field", ["color_s", "dc.size_l", "note_t", "due_dt", "x-y_s", "title", "host", "depth"])
@pytest.mark.parametrize("descending", [False, True])
def test_order_when_by_an_attribute_then_by_its_values_and_those_without_come_last(
    local: SearchIndex, field: str, *, descending: bool
) -> None:
    sort = f"-{field}" if descending else field
    wanted = expected(field, descending=descending)

    assert ids(local, sort=sort) == wanted
    assert [*ids(local, sort=sort, rows=7), *ids(local, sort=sort, start=7, rows=9)] == wanted[:16]
    assert ids(local, sort=sort, start=55) == wanted[55:]
    assert (
        ids(local, sort=sort, filters=[("host", "h1.test")], rows=3)
        == [each for each in wanted if int(each[-2:]) % 3 == 1][:3]
    )


ATTRIBUTES = {
    "color": "color_s", "dc.size": "dc.size_l", "note": "note_t", "due": "due_dt", "x-y": "x-y_s", "version": "version_s",
}  # fmt: skip
WORDS = [
    "color:red", "Color:RED", "color:grun", "color:Grün", "color:gr", "dc.size:2.5", "dc.size:7.0", "dc.size:x",
    "note:words", "note:two", 'note:"two words"', 'note:"words two"', "-note:two", "x-y:v3", "x-y:v3 OR x-y:v4",
    "due:2024-01-28", "due:soon", "shelf dc.size:x", "dc.size:x OR x-y:v3", "-dc.size:x", "shelf -color:red", "version:2",
    "unheard:red", "note:on",
]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "field", "values"),
    [
        ("COLOR:RED", "color_s", {"red"}),
        ("color:2024", "color_s", {"2024-01-01T00:00:00+02:00"}),
        ("note:words", "note_t", {"two words", "Two Words"}),
        ('note:"words two"', "note_t", set()),
        ("dc.size:2.50", "dc.size_l", {2.5}),
        ("dc.size:1", "dc.size_l", {1}),
    ],
)
def test_words_when_limited_to_an_attribute_then_its_words_or_its_number(
    local: SearchIndex, words: str, field: str, values: set[Any]
) -> None:
    def values_of(fields: dict[str, Any]) -> set[Any]:
        value = fields.get(field)
        return set(value) if isinstance(value, list) else {value}

    wanted = {each.id for each in documents() if values_of(dict(each.fields)) & values}
    assert found(local, words, attributes=ATTRIBUTES) == wanted


@pytest.mark.solr
def test_answers_when_the_same_is_asked_of_both_indexes_then_they_are_equal(
    local: SearchIndex, solr_receiver: SolrReceiver
) -> None:
    solr = told(solr_receiver)
    filters = [
        ("color_s", "red"), ("color_s", "2024-01-01T00:00:00+02:00"), ("color_s", "Red"), ("dc.size_l", "1"),
        ("dc.size_l", "1e20"), ("dc.size_l", "x"), ("note_t", "two words"), ("note_t", "two"), ("x-y_s", "v3"),
        ("due_dt", "2024-02-01"), ("title", "T3"), ("depth", "2"),
    ]  # fmt: skip

    for field in [name for name in FIELDS if name != "last_modified"]:
        for sort in (field, f"-{field}"):
            assert ids(local, sort=sort) == ids(solr, sort=sort), sort
    for each in filters:
        assert sorted(ids(local, filters=[each])) == sorted(ids(solr, filters=[each])), each
    for words in WORDS:
        assert found(local, words, attributes=ATTRIBUTES) == found(solr, words, attributes=ATTRIBUTES), words
    for words in ("*", "shelf"):
        query = SearchQuery(words=words, facets=FIELDS, filters=[("host", "h2.test")])
        assert local.search(query).facets == solr.search(query).facets
    attributes = [
        dict(index.search(SearchQuery(words="*", sort="url", rows=60)).hits[7].fields) for index in (local, solr)
    ]
    assert attributes[0] == attributes[1]


def test_facets_when_there_are_many_values_then_the_most_frequent_and_of_equals_the_first(tmp_path: Path) -> None:
    index = LocalReceiver(tmp_path / "index")
    made = [
        IndexedDocument(id=f"s:{number}", fields={"content": "x", "n_l": number % 300, "s_s": f"{number % 300:03}"})
        for number in range(350)
    ]
    put(index, *made[:200])
    put(index, *made[200:])

    facets = index.search(SearchQuery(words="*", facets=["n_l", "s_s"])).facets

    assert facets["n_l"] == {str(number): 2 if number < 50 else 1 for number in range(100)}
    assert facets["s_s"] == {f"{number:03}": 2 if number < 50 else 1 for number in range(100)}
    index.close()
