"""Why a query finds nothing, and what it may have meant: on both indexes (interface: ``notes``, ``suggestion``)."""

from __future__ import annotations

import pytest

from searchcrawl.index.receiver import SearchIndex, SearchQuery
from searchcrawl.items import IndexedDocument
from searchcrawl.queries.search import search
from tests.index_documents import put

pytestmark = pytest.mark.solr

TEXTS = ("the vacuum pump", "an oracle on demand", "Bibliothèque municipale", "vacuum chambers and oracles")
FIELDS = {"size": "size_l", "color": "color_s", "mimetype": "mimetype", "title": "title"}

STOP = "only stop words, which are in no index: "
#: What is said of queries: the notes, and the suggestion.
ANSWERS = {
    "vacuum": ([], None),
    "on": ([f"{STOP}on"], None),
    "on the": ([f"{STOP}on, the"], None),
    "": (["there is no word to look for"], None),
    "vacum": (["no document has vacum"], "vacuum"),
    "VACUMM pump": (["no document has VACUMM"], "vacuum pump"),
    "vacuum zzzzqqqq": (["no document has zzzzqqqq"], "vacuum"),
    "zzzzqqqq": (["no document has zzzzqqqq"], None),
    "vacuum oracle municipale": (["no document has all of this, although each part alone is found"], None),
    "the depth:9": (["no document has depth:9"], None),
    "source:on vacuum": (["no document has source:on"], "vacuum"),
    "the*": (["no document has the*"], None),
    "modified:2025-13 OR the": (
        ["modified: '2025-13' is no date, as 2025-06-30, 2025-06 or 2025"],
        None,
    ),
    "the OR depth:9": (["no document has the OR depth:9"], None),
    "on OR the OR on": ([f"{STOP}on, the"], None),
    'vacuum modified:"2030-01-01 10:00"': (['no document has modified:"2030-01-01 10:00"'], "vacuum"),
    "size:many": (["size: 'many' is no number"], None),
    "sise:3 vacuum": (
        ["unknown field: sise (did you mean size?); it was looked for as text", "no document has sise:3"],
        "vacuum",
    ),
    "bibliotheque": ([], None),
    "biblotheque": (["no document has biblotheque"], "bibliotheque"),
    "modified:2030..": (["no document has modified:2030.."], None),
    '"pump vacuum"': (['no document has "pump vacuum"'], None),
    "http://a.test/1": (["no document has http://a.test/1"], "url:http://a.test/1"),
    "https://a.test/9 pump": (["no document has https://a.test/9"], "pump"),
    "数据库" * 50: ([f"no document has {'数据库' * 50}"], None),
    "x" * 300: (["no index has words of more than 255 bytes"], None),
    f'"{"pump " * 200}"': ([f'no document has "{"pump " * 200}'[:300] + "…"], None),
    "vacuum -pump -chambers": (["no document has all of this, although each part alone is found"], None),
}


def tell(index: SearchIndex) -> None:
    documents = [
        IndexedDocument(
            id=f"site:{number}",
            fields={"url": f"http://a.test/{number}", "source": "site", "groups": ["press"], "content": text,
                    "size_l": number, "mimetype": "text/html"},
        )
        for number, text in enumerate(TEXTS)
    ]  # fmt: skip
    put(index, *documents)


def ask(index: SearchIndex, query: SearchQuery | str) -> tuple[list[str], str | None]:
    query = SearchQuery(words=query) if isinstance(query, str) else query
    answer = search(index, query, fields=FIELDS)
    assert (answer["total"] == 0) == bool(answer["notes"])
    return answer["notes"], answer["suggestion"]


def test_notes_when_a_query_finds_nothing_then_they_say_why_and_something_like_it_is_suggested(
    index: SearchIndex,
) -> None:
    tell(index)

    asked = {words: ask(index, words) for words in ANSWERS}

    # One index has words without accents, the other as they are written.
    notes, suggested = asked["biblotheque"]
    asked["biblotheque"] = (notes, (suggested or "").replace("è", "e"))
    assert asked == ANSWERS


def test_notes_when_filters_leave_nothing_then_they_are_named(index: SearchIndex) -> None:
    empty = ask(index, "vacuum")
    tell(index)

    asked = [
        ask(index, SearchQuery(words="vacuum", **limits))
        for limits in (
            {"source": "other"},
            {"groups": ["press"]},
            {"groups": ["staff"]},
            {"filters": [("mimetype", "text/html")]},
            {"filters": [("size", "1")]},
            {"filters": [("mimetype", "text/html"), ("size", "9")]},
        )
    ]

    assert empty == (["the index has no documents"], None)
    assert asked == [
        (["there is no document with source other"], None),
        ([], None),
        (["there is no document with group staff"], None),
        ([], None),
        (["no document has vacuum, with size 1"], None),
        (["there is no document with mimetype text/html and size 9"], None),
    ]
