from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.items import IndexedDocument
from tests.local_index import batch, document, found, named

MOMENT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[LocalReceiver]:
    made = LocalReceiver(tmp_path / "var" / "index")
    yield made
    made.close()


@pytest.fixture
def phrases(receiver: LocalReceiver) -> LocalReceiver:
    receiver.deliver(
        batch(
            1,
            document("on", "Oracle on demand"),
            document("bare", "oracle demand"),
            document("tech", "Oracle technology on demand."),
            document("long", "All about Oracle, on demand: and much more besides."),
        )
    )
    return receiver


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('"oracle on demand"', {"on", "long"}),
        ('"oracle demand"', {"bare"}),
        ('"oracle on on demand"', {"tech"}),
        ('"oracle technology on demand"', {"tech"}),
        ('"on demand"', {"on", "bare", "tech", "long"}),
        ("on", set()),
        ('"on the"', set()),
        ("-on", {"on", "bare", "tech", "long"}),
        ("oracle on", {"on", "bare", "tech", "long"}),
        ("oracle -technology", {"on", "bare", "long"}),
        ('oracle -"oracle on demand"', {"bare", "tech"}),
        ("technology OR besides", {"tech", "long"}),
        ("ORACLE Technology", {"tech"}),
        ("*", {"on", "bare", "tech", "long"}),
        ("* -technology", {"on", "bare", "long"}),
        ("oracl", set()),
    ],
)
def test_search_when_a_phrase_has_stop_words_then_they_hold_their_places(
    phrases: LocalReceiver, words: str, expected: set[str]
) -> None:
    assert named(phrases, words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("検索", {"ja"}),
        ("日本語", {"ja"}),
        ("語日", set()),
        ("日本 検索", {"ja"}),
        ("エンジン", {"ja"}),
        ("ｴﾝｼﾞﾝ", {"ja"}),
        ("全文検索", set()),
        ("한국어", {"ko"}),
        ("ABC", {"ja"}),
        ("naive", {"accents"}),
        ("cafe", {"accents"}),
        ("cafe\u0301", {"accents"}),
        ("𠮷野家", {"ja"}),
        ("naïve", {"accents"}),
        ("straße", {"accents"}),
        ("full-text", {"accents"}),
        ("foo_bar", {"accents"}),
    ],
)
def test_search_when_the_text_is_not_plain_english_then_it_is_found_by_its_words(
    receiver: LocalReceiver, words: str, expected: set[str]
) -> None:
    receiver.deliver(
        batch(
            1,
            document("ja", "これは日本語の検索エンジンです。ＡＢＣ 𠮷野家"),
            document("ko", "한국어로 쓴 글"),
            document("accents", "Naïve full text in the Straße, foo_bar(), cafe\u0301 🔬"),
        )
    )

    assert named(receiver, words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("title:Guide", {"a"}),
        ("guide", {"a", "b"}),
        ('title:"user guide"', {"a"}),
        ("author:smith", {"a"}),
        ("subject:cooking", {"b"}),
        ("description:short", {"b"}),
        ("url:docs", {"a"}),
        ("url:http://a.example/docs/a", {"a"}),
        ("host:example.org", {"b"}),
        ("mimetype:pdf", {"b"}),
        ("mimetype:text/html", {"a"}),
        ("language:en", {"a"}),
        ("source:demo", {"a", "b"}),
        ("source:dem", set()),
        ("secret:a", set()),
    ],
)
def test_search_when_a_field_is_named_then_only_it_is_searched(
    receiver: LocalReceiver, words: str, expected: set[str]
) -> None:
    first = {"url": "http://a.example/docs/a", "host": "a.example", "mimetype": "text/html", "language": "en"}
    second = {"url": "http://b.example.org/", "host": "b.example.org", "mimetype": "application/pdf", "language": "de"}
    receiver.deliver(
        batch(
            1,
            document("a", "text", **first | {"title": "The User Guide", "author": "Ann Smith"}),
            document("b", "a guide", **second | {"title": "Recipes", "subject": "Cooking", "description": "In short"}),
        )
    )

    assert named(receiver, words) == expected


def test_search_when_a_word_is_in_the_title_then_that_document_comes_first(receiver: LocalReceiver) -> None:
    receiver.deliver(batch(1, document("a", "guide"), document("b", "text", title="The guide"), document("c", "guide")))

    assert found(receiver, "guide")[0] == "b"


@pytest.fixture
def shelf(receiver: LocalReceiver) -> LocalReceiver:
    kinds = ["text/html", "application/pdf"]
    documents = [
        document(
            str(number),
            "shelf",
            title=f"Book {9 - number}",
            mimetype=kinds[number % 2],
            groups=["all", f"group{number % 3}"],
            depth=number,
            last_modified=datetime(2024, 1, 1 + number, tzinfo=UTC),
            color_s=["red", "blue"] if number == 1 else "red",
            **{"dc.size_l": number * 1.5, "due_dt": datetime(2025, 1, 1 + number, tzinfo=UTC)},
        )
        for number in range(6)
    ]
    receiver.deliver(batch(1, *documents))
    receiver.deliver(batch(1, IndexedDocument(id="other:1", fields={"content": "shelf"}), source="other"))
    return receiver


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("mimetype", "application/pdf")], {"1", "3", "5"}),
        ([("mimetype", "application")], set()),
        ([("mimetype", "text/html"), ("depth", "2")], {"2"}),
        ([("depth", "x")], set()),
        ([("last_modified", "2024-01-03T00:00:00Z")], {"2"}),
        ([("last_modified", "2024-01-03")], {"2"}),
        ([("last_modified", "soon")], set()),
        ([("title", "Book 7")], {"2"}),
        ([("title", "Book")], set()),
        ([("color_s", "blue")], {"1"}),
        ([("dc.size_l", "4.5")], {"3"}),
        ([("dc.size_l", "3")], {"2"}),
        ([("dc.size_l", "3.00")], {"2"}),
        ([("dc.size_l", "three")], set()),
        ([("due_dt", "soon")], set()),
        ([("due_dt", "2025-01-02T00:00:00Z")], {"1"}),
        ([("unknown_s", "red")], set()),
        ([("depth", "9" * 40)], set()),
        ([("color_s", "9" * 40)], set()),
    ],
)
def test_search_when_filtered_then_values_are_compared_whole(
    shelf: LocalReceiver, filters: list[tuple[str, str]], expected: set[str]
) -> None:
    assert named(shelf, "shelf", filters=filters, source="demo") == expected


def test_search_when_limited_to_a_source_or_to_groups_then_only_theirs_are_found(shelf: LocalReceiver) -> None:
    assert named(shelf, "*", source="other") == {"other:1"}
    assert named(shelf, "*", groups=["group1", "group2"]) == {"1", "2", "4", "5"}
    assert named(shelf, "*", groups=["group1"], source="other") == set()


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("depth", ["0", "1", "2", "3", "4", "5"]),
        ("-depth", ["5", "4", "3", "2", "1", "0"]),
        ("-last_modified", ["5", "4", "3", "2", "1", "0"]),
        ("title", ["5", "4", "3", "2", "1", "0"]),
        ("-id", ["5", "4", "3", "2", "1", "0"]),
        ("-score", ["0", "1", "2", "3", "4", "5"]),
    ],
)
def test_search_when_sorted_then_the_order_is_that_of_the_field(
    shelf: LocalReceiver, sort: str, expected: list[str]
) -> None:
    assert found(shelf, "shelf", sort=sort, source="demo") == expected
    assert found(shelf, "shelf", sort=sort, source="demo", start=2, rows=3) == expected[2:5]


@pytest.mark.parametrize(
    "asked",
    [
        {"filters": [("content", "shelf")]},
        {"facets": ["anchor"]},
        {"sort": "content"},
        {"sort": "color"},
        {"facets": ["color"]},
        {"filters": [("color", "red")]},
    ],
)
def test_search_when_whole_values_of_a_text_are_asked_for_then_it_says_that_it_cannot(
    shelf: LocalReceiver, asked: dict[str, Any]
) -> None:
    with pytest.raises(UnsupportedByIndex, match="cannot be"):
        shelf.search(SearchQuery(words="*", **asked))


def test_search_when_facets_are_asked_for_then_found_documents_are_counted(shelf: LocalReceiver) -> None:
    facets = ["mimetype", "groups", "color_s", "dc.size_l", "last_modified", "unknown_s"]

    answer = shelf.search(SearchQuery(words="shelf", filters=[("mimetype", "application/pdf")], facets=facets))

    assert answer.facets == {
        "mimetype": {"application/pdf": 3},
        "groups": {"all": 3, "group0": 1, "group1": 1, "group2": 1},
        "color_s": {"red": 3, "blue": 1},
        "dc.size_l": {"1.5": 1, "4.5": 1, "7.5": 1},
        "last_modified": {"2024-01-02T00:00:00Z": 1, "2024-01-04T00:00:00Z": 1, "2024-01-06T00:00:00Z": 1},
        "unknown_s": {},
    }


@pytest.mark.parametrize("page", [{"rows": 0}, {"start": 7}, {"start": 10**12, "rows": 10**9}])
def test_search_when_the_page_is_beyond_the_hits_then_the_total_is_still_told(
    shelf: LocalReceiver, page: dict[str, Any]
) -> None:
    answer = shelf.search(SearchQuery(words="shelf", **page))

    assert (answer.total, list(answer.hits)) == (7, [])


def test_search_when_a_document_is_found_then_its_fields_come_back_as_they_were(receiver: LocalReceiver) -> None:
    fields = {
        "url": "http://a.example/ü",
        "title": "日本語",
        "content": "text\nwith lines",
        "depth": 2,
        "groups": ["a", "b"],
        "last_modified": MOMENT,
        "duplicates": ["http://b.example/"],
        "color_s": "2024-05-06T07:08:09Z",
        "size_l": 1.5,
    }
    receiver.deliver(batch(3, IndexedDocument(id="demo:1", fields=fields)))

    (hit,) = receiver.search(SearchQuery(words="日本語", filters=[("color_s", "2024-05-06T07:08:09Z")])).hits

    # The text itself is told by its snippet only.
    del fields["content"]
    expected = fields | {"last_modified": "2024-05-06T07:08:09Z", "source": "demo", "crawl_version": 3}
    assert hit.fields == expected
    assert hit.score > 0


def test_search_when_words_are_in_a_long_text_then_the_snippet_shows_the_best_passage(receiver: LocalReceiver) -> None:
    content = "oracle " + "filler words " * 300 + "about Oracle on demand, as said " + "more words " * 300
    receiver.deliver(batch(1, document("long", content)))

    (hit,) = receiver.search(SearchQuery(words='"oracle on demand" said')).hits

    assert "about \ue000Oracle on demand\ue001, as \ue000said\ue001 more" in hit.snippet
    assert hit.snippet.startswith("… ")
    assert hit.snippet.endswith(" …")
    assert len(hit.snippet) < 260


def test_search_when_given_any_query_then_it_answers(receiver: LocalReceiver) -> None:
    receiver.deliver(batch(1, *(document(str(number), "oracle on demand 日本", color_s="x") for number in range(3))))
    chance = random.Random(5)
    pieces = [
        '"',
        "-",
        "OR",
        "*",
        ":",
        "title:",
        "url:",
        "source:",
        " ",
        "a",
        "日本",
        "\x00",
        "\udcff",
        "\\",
        "on",
        "é",
        "🎉",
    ]
    names = ["color_s", "depth", "last_modified", "a.b_t", "a-b_l", "a_dt", "host"]
    values = ["x", "1", "1e5", "nan", "9" * 19, "2024-01-01", "", "\x00", "0001-01-01"]

    for _ in range(600):
        answer = receiver.search(
            SearchQuery(
                words="".join(chance.choices(pieces, k=chance.randrange(12))),
                filters=[(chance.choice(names), chance.choice(values))] if chance.random() < 0.3 else (),
                facets=chance.sample(names, k=chance.randrange(3)),
                start=chance.randrange(3),
            )
        )
        assert len(answer.hits) <= answer.total <= 3
