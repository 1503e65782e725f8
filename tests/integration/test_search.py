"""What both indexes find alike: words, phrases with stop words, all scripts, whole values, orders and facets (G1, G2)."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import HIT_END, HIT_START, SearchIndex, SearchQuery
from searchcrawl.items import IndexedDocument
from tests.index_documents import document, found, listed, put

pytestmark = pytest.mark.solr

_PHRASES: Final = {
    "on": "Oracle on demand",
    "bare": "oracle demand",
    "tech": "Oracle technology on demand.",
    "long": "All about Oracle, on demand: and much more besides.",
}
_OF_PHRASES: Final[dict[str, set[str]]] = {
    '"oracle on demand"': {"on", "long"},
    '"oracle demand"': {"bare"},
    '"oracle on on demand"': {"tech"},
    '"oracle technology on demand"': {"tech"},
    '"on demand"': {"on", "bare", "tech", "long"},
    "on": set(),
    '"on"': set(),
    '"on the"': set(),
    "on OR the": set(),
    "title:on": set(),
    "on -oracle": set(),
    "-on on": set(),
    "": set(),
    "-on": {"on", "bare", "tech", "long"},
    "oracle on": {"on", "bare", "tech", "long"},
    "oracle -technology": {"on", "bare", "long"},
    'oracle -"oracle on demand"': {"bare", "tech"},
    "technology OR besides": {"tech", "long"},
    "ORACLE Technology": {"tech"},
    "*": {"on", "bare", "tech", "long"},
    "* -technology": {"on", "bare", "long"},
    "oracl": set(),
}
#: Documents, and which of them are found by what is typed.
FOUND: Final[dict[str, tuple[list[IndexedDocument], dict[str, set[str]]]]] = {
    **{
        f"phrases in {field}": ([document(name, **{field: text}) for name, text in _PHRASES.items()], _OF_PHRASES)
        for field in ("content", "title", "description")
    },
    "scripts": (
        [
            document("ja", content="これは日本語の検索エンジンです。ＡＢＣ 𠮷野家"),
            document("tower", content="日本語oracleの東京タワーの水です。", title="日本"),
            document("ko", content="한국어로 쓴 글"),
            document("seoul", content="서울특별시"),
            document("accents", content="Naïve full text in the Straße, foo_bar(), cafe\u0301 🔬"),
            document("fr", content="un café en été"),
            document("code", content="see os.path, searchcrawl.toml, and e-mail"),
        ],
        {
            "検索": {"ja"},
            "日本語": {"ja", "tower"},
            "語日": set(),
            "日本 検索": {"ja"},
            "エンジン": {"ja"},
            "全文検索": set(),
            "ABC": {"ja"},
            "𠮷野家": {"ja"},
            "東京": {"tower"},
            "東京タワー": {"tower"},
            "京都": set(),
            "水": {"tower"},
            "語oracle": {"tower"},
            '"タワーの水"': {"tower"},
            '"水のタワー"': set(),
            "title:日本": {"tower"},
            "ｏｒａｃｌｅ": {"tower"},
            "ﾀﾜｰ": {"tower"},
            "한국어": {"ko"},
            "서울": {"seoul"},
            "naive": {"accents"},
            "naïve": {"accents"},
            "cafe": {"accents", "fr"},
            "cafe\u0301": {"accents", "fr"},
            "Été": {"fr"},
            "straße": {"accents"},
            "full-text": {"accents"},
            "foo_bar": {"accents"},
            "path": {"code"},
            "searchcrawl.toml": {"code"},
            "E-Mail": {"code"},
            '"mail e"': set(),
        },
    ),
    "fields": (
        [
            document(
                "a", url="http://a.example/docs/a", host="a.example", mimetype="text/html", language="en",
                title="The User Guide", author="Ann Smith", content="red car",
            ),
            document(
                "b", url="http://b.example.org/", host="b.example.org", mimetype="application/pdf", language="de",
                title="Recipes", subject="Cooking", description="In short", content="a guide, red and bike", author="Lee",
            ),
            document("c", content="blue", host="www.example.com"),
        ],
        {
            "title:Guide": {"a"},
            "guide": {"a", "b"},
            'title:"user guide"': {"a"},
            "author:smith": {"a"},
            "lee": {"b"},
            "subject:cooking": {"b"},
            "description:short": {"b"},
            "url:docs": {"a"},
            "url:http://a.example/docs/a": {"a"},
            "url:c host:org": set(),
            "host:example.org": {"b"},
            "host:example.com blue": {"c"},
            "mimetype:pdf": {"b"},
            "mimetype:text/html": {"a"},
            "language:en": {"a"},
            "source:site": {"a", "b", "c"},
            "source:site blue": {"c"},
            "source:sit": set(),
            "secret:a": set(),
            "id:a": set(),
            "*": {"a", "b", "c"},
            "red car": {"a"},
            "red -car": {"b"},
            "-car": {"b", "c"},
            "car OR blue": {"a", "c"},
            "red OR -red": {"a", "b", "c"},
            '"': set(),
            "{!func}sum(1)": set(),
            "_query_:red": set(),
            r"red\ ) AND (": {"a", "b"},
            "/.*/": set(),
            "re*": {"a", "b"},
            "x" * 5000: set(),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_search_when_words_are_typed_then_these_documents_are_found(index: SearchIndex, name: str) -> None:
    documents, asked = FOUND[name]
    put(index, *documents)

    assert {words: found(index, words) for words in asked} == asked


def test_search_when_a_word_is_in_the_title_then_that_document_comes_first(index: SearchIndex) -> None:
    put(
        index,
        document("a", content="guide"),
        document("b", content="text", title="The guide"),
        document("c", content="guide"),
    )

    assert listed(index, "guide")[0] == "b"


@pytest.fixture
def shelf(index: SearchIndex) -> SearchIndex:
    kinds = ["text/html", "application/pdf"]
    books = [
        document(
            str(number),
            content="shelf",
            title=f"Book {9 - number}" if number < 5 else "book",
            mimetype=kinds[number % 2],
            groups=["all", f"group{number % 3}"],
            depth=number,
            last_modified=datetime(2024, 1, 1 + number, tzinfo=UTC),
            color_s=["red", "blue"] if number == 1 else "red",
            note_t="hello world" if number == 4 else "hello",
            **{"dc.size_l": number * 1.5, "due_dt": datetime(2025, 1, 1 + number, tzinfo=UTC)},
        )
        for number in range(6)
    ]
    put(index, *books)
    put(index, IndexedDocument(id="other", fields={"source": "other", "content": "shelf"}), source="other")
    return index


FILTERED: Final[list[tuple[list[tuple[str, str]], set[str]]]] = [
    ([("mimetype", "application/pdf")], {"1", "3", "5"}),
    ([("mimetype", "application")], set()),
    ([("mimetype", "text/html"), ("depth", "2")], {"2"}),
    ([("depth", "x")], set()),
    ([("last_modified", "2024-01-03T00:00:00Z")], {"2"}),
    ([("last_modified", "2024-01-03T01:00:00+01:00")], {"2"}),
    ([("last_modified", "2024-01-03")], {"2"}),
    ([("last_modified", "soon")], set()),
    ([("title", "Book 7")], {"2"}),
    ([("title", "Book")], set()),
    ([("note_t", "hello world")], {"4"}),
    ([("color_s", "blue")], {"1"}),
    ([("color_s", "red"), ("dc.size_l", "3")], {"2"}),
    ([("dc.size_l", "4.5")], {"3"}),
    ([("dc.size_l", "3")], {"2"}),
    ([("dc.size_l", "3.00")], {"2"}),
    ([("dc.size_l", "three")], set()),
    ([("due_dt", "soon")], set()),
    ([("due_dt", "2025-01-02T00:00:00Z")], {"1"}),
    ([("unknown_s", "red")], set()),
    ([("unknown_l", "1")], set()),
    ([("depth", "9" * 40)], set()),
    ([("color_s", "9" * 40)], set()),
]
SORTED: Final = {
    "depth": "012345",
    "-depth": "543210",
    "-last_modified": "543210",
    "title": "432105",
    "-id": "543210",
    "-score": "012345",
}


def test_search_when_filtered_then_values_are_compared_whole(shelf: SearchIndex) -> None:
    assert [(each, found(shelf, "shelf", filters=each, source="site")) for each, _ in FILTERED] == FILTERED


def test_search_when_limited_to_a_source_or_to_groups_then_only_theirs_are_found(shelf: SearchIndex) -> None:
    assert found(shelf, "*", source="other") == {"other"}
    assert found(shelf, "*", groups=["group1", "group2", 'odd") OR *:*']) == {"1", "2", "4", "5"}
    assert found(shelf, "*", groups=["group1"], source="other") == set()


def test_search_when_sorted_then_the_order_is_that_of_the_field(shelf: SearchIndex) -> None:
    assert {each: "".join(listed(shelf, "shelf", sort=each, source="site")) for each in SORTED} == SORTED
    assert {each: "".join(listed(shelf, "shelf", sort=each, source="site", start=2, rows=3)) for each in SORTED} == {
        each: order[2:5] for each, order in SORTED.items()
    }


UNSUPPORTED: Final[list[dict[str, Any]]] = [
    {"filters": [("content", "shelf")]},
    {"facets": ["anchor"]},
    {"sort": "content"},
    {"sort": "color"},
    {"facets": ["color"]},
    {"filters": [("color", "red")]},
]


def test_search_when_whole_values_of_a_text_are_asked_for_then_it_says_that_it_cannot(shelf: SearchIndex) -> None:
    for asked in UNSUPPORTED:
        with pytest.raises(UnsupportedByIndex, match="cannot be"):
            shelf.search(SearchQuery(words="*", **asked))


def test_search_when_facets_are_asked_for_then_found_documents_are_counted(shelf: SearchIndex) -> None:
    facets = ["mimetype", "groups", "color_s", "dc.size_l", "last_modified", "source", "unknown_s"]

    answer = shelf.search(SearchQuery(words="shelf", filters=[("mimetype", "application/pdf")], facets=facets))

    assert answer.facets == {
        "mimetype": {"application/pdf": 3},
        "groups": {"all": 3, "group0": 1, "group1": 1, "group2": 1},
        "color_s": {"red": 3, "blue": 1},
        "dc.size_l": {"1.5": 1, "4.5": 1, "7.5": 1},
        "last_modified": {"2024-01-02T00:00:00Z": 1, "2024-01-04T00:00:00Z": 1, "2024-01-06T00:00:00Z": 1},
        "source": {"site": 3},
        "unknown_s": {},
    }


def test_search_when_the_page_is_beyond_the_hits_then_the_total_is_still_told(shelf: SearchIndex) -> None:
    answers = [shelf.search(SearchQuery(words="shelf", rows=rows, start=start)) for rows, start in ((0, 0), (10, 7))]

    assert [(answer.total, list(answer.hits)) for answer in answers] == [(7, [])] * 2


def test_search_when_paged_then_every_document_comes_once(index: SearchIndex) -> None:
    put(index, *(document(f"d{number:02}", content="same") for number in range(25)))

    pages = [index.search(SearchQuery(words="same", rows=10, start=start)) for start in (0, 10, 20)]

    assert [page.total for page in pages] == [25, 25, 25]
    assert [hit.id for page in pages for hit in page.hits] == [f"d{number:02}" for number in range(25)]


def test_search_when_a_document_is_found_then_its_fields_come_back_as_they_were(index: SearchIndex) -> None:
    fields = {
        "url": "http://a.example/ü",
        "title": "日本語",
        "content": "text\nwith lines",
        "depth": 2,
        "groups": ["a", "b"],
        "last_modified": datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
        "duplicates": ["http://b.example/"],
        "color_s": "2024-05-06T07:08:09Z",
        "size_l": 1.5,
    }
    put(index, document("a", kind_s=["one"], **fields), version=3)

    (hit,) = index.search(SearchQuery(words="日本語", filters=[("color_s", "2024-05-06T07:08:09Z")])).hits

    # The text itself is told by its snippet only.
    del fields["content"]
    fields |= {"last_modified": "2024-05-06T07:08:09Z", "source": "site", "crawl_version": 3}
    # Solr gives one value in place of a list of one.
    assert hit.fields in ({**fields, "kind_s": ["one"]}, {**fields, "kind_s": "one"})
    assert hit.score > 0


def test_search_when_hits_are_shown_then_snippets_mark_them_in_plain_text(index: SearchIndex) -> None:
    text = "Nothing here. " * 200 + "Then <b>Oracle</b> &amp; friends on demand. " + "More of the same. " * 200
    put(index, document("a", content=text, title="A title"), document("b", content="no words", title="oracle"))

    hits = {hit.id: hit for hit in index.search(SearchQuery(words="oracle")).hits}

    assert f"<b>{HIT_START}Oracle{HIT_END}</b> &amp; friends" in hits["a"].snippet
    assert len(hits["a"].snippet) < 500
    assert hits["b"].snippet == "no words"
    assert hits["a"].fields["title"] == "A title"


def test_snippet_when_a_text_has_no_sentences_then_its_passages_are_short(index: SearchIndex) -> None:
    rows = "\n".join(f"cell {number} of the table" for number in range(300))
    put(index, document("a", content=f"{rows}\nvacuum cleaner\n{rows}\nThe vacuum starts. {rows}"))

    (hit,) = index.search(SearchQuery(words="vacuum")).hits

    assert len(hit.snippet) < 520
    assert f"{HIT_START}vacuum{HIT_END} cleaner" in hit.snippet
    assert "… …" not in hit.snippet


def test_snippet_when_words_are_in_a_long_text_then_it_shows_the_best_passage(index: SearchIndex) -> None:
    content = "oracle " + "filler words " * 300 + "about Oracle on demand, as said " + "more words " * 300
    put(index, document("long", content=content))

    (hit,) = index.search(SearchQuery(words='"oracle on demand" said')).hits

    assert f"about {HIT_START}Oracle on demand{HIT_END}, as {HIT_START}said{HIT_END} more" in hit.snippet
    assert hit.snippet.startswith("… ")
    assert hit.snippet.endswith(" …")
    assert len(hit.snippet) < 260


def test_search_when_given_any_query_then_it_answers(tmp_path: Path) -> None:
    receiver = LocalReceiver(tmp_path / "index")
    put(receiver, *(document(str(number), content="oracle on demand 日本", color_s="x") for number in range(3)))
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
    receiver.close()
