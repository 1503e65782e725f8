"""What a real Solr finds: the query language, stop words with places, all scripts (G1, G2)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest

from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.receiver import HIT_END, HIT_START, SearchQuery
from searchcrawl.index.solr.receiver import SolrReceiver
from searchcrawl.items import IndexedDocument
from tests.solr_documents import document, found, put

pytestmark = pytest.mark.solr


def test_search_when_stop_words_are_in_a_phrase_then_they_hold_their_place(solr_receiver: SolrReceiver) -> None:
    texts = {"on": "oracle on demand", "none": "oracle demand", "technology": "oracle technology on demand"}
    for field in ("content", "title", "description"):
        put(
            solr_receiver, *(document(f"{field}-{name}", source=field, **{field: text}) for name, text in texts.items())
        )
        asked = {
            '"oracle on demand"': {"on"},
            '"oracle on on demand"': {"technology"},
            '"oracle demand"': {"none"},
            "oracle on demand": {"on", "none", "technology"},
        }

        for words, expected in asked.items():
            assert found(solr_receiver, words, source=field) == {f"{field}-{name}" for name in expected}, words


def test_search_when_only_stop_words_are_asked_for_then_nothing_is_found(solr_receiver: SolrReceiver) -> None:
    put(solr_receiver, document("a", content="oracle on demand", title="on"), document("b", content="on"))

    for words in ("on", '"on"', "on the", "title:on", "on -oracle", "-on on", "on OR the", ""):
        assert solr_receiver.search(SearchQuery(words=words)).total == 0, words


OF_SCRIPTS: Final[dict[str, set[str]]] = {
    "東京": {"ja"},
    "東京タワー": {"ja"},
    "京都": set(),
    "水": {"ja"},
    "語oracle": {"ja"},
    '"タワーの水"': {"ja"},
    '"水のタワー"': set(),
    "title:日本": {"ja"},
    "ｏｒａｃｌｅ": {"ja"},
    "ﾀﾜｰ": {"ja"},
    "서울": {"ko"},
    "cafe": {"fr"},
    "Été": {"fr"},
    "path": {"code"},
    "searchcrawl.toml": {"code"},
    "E-Mail": {"code"},
    '"mail e"': set(),
}


def test_search_when_a_text_is_of_any_script_then_its_words_are_found(solr_receiver: SolrReceiver) -> None:
    put(
        solr_receiver,
        document("ja", content="日本語oracleの東京タワーの水です。", title="日本"),
        document("ko", content="서울특별시"),
        document("fr", content="un café en été"),
        document("code", content="see os.path, searchcrawl.toml, and e-mail"),
    )

    assert {words: found(solr_receiver, words) for words in OF_SCRIPTS} == OF_SCRIPTS


TYPED: Final[dict[str, set[str]]] = {
    "*": {"a", "b", "c"},
    "red car": {"a"},
    "red -car": {"b"},
    "-car": {"b", "c"},
    "car OR blue": {"a", "c"},
    "red OR -red": {"a", "b", "c"},
    "title:first": {"a"},
    "author:lee": {"b"},
    "lee": {"b"},
    "url:c host:example": set(),
    "host:example.com red": {"a"},
    "source:site blue": {"c"},
    '"': set(),
    "{!func}sum(1)": set(),
    "_query_:red": set(),
    "id:a": set(),
    r"red\ ) AND (": {"a", "b"},
    "/.*/": set(),
    "re*": {"a", "b"},
    "x" * 5000: set(),
}


def test_search_when_words_are_typed_then_the_query_language_holds(solr_receiver: SolrReceiver) -> None:
    put(
        solr_receiver,
        document("a", content="red car", title="first", host="www.example.com"),
        document("b", content="red and bike", author="Ann Lee"),
        document("c", content="blue"),
    )

    assert {words: found(solr_receiver, words) for words in TYPED} == TYPED


def test_search_when_filtered_sorted_and_counted_then_whole_values_are_used(solr_receiver: SolrReceiver) -> None:
    put(
        solr_receiver,
        document("a", title="Zoo", groups=["g1", "g2"], author="Ann Lee", color_s=["red"], size_l=5, depth=1),
        document("b", title="apple", groups=["g2"], author="Ann", note_t="hello world", size_l=1.5),
        IndexedDocument(id="c", fields={"source": "other", "last_modified": datetime(2020, 1, 1, tzinfo=UTC)}),
    )

    assert found(solr_receiver, "*", source="site") == {"a", "b"}
    assert found(solr_receiver, "*", groups=["g1"]) == {"a"}
    assert found(solr_receiver, "*", groups=["g1", "g2", 'odd") OR *:*']) == {"a", "b"}
    assert found(solr_receiver, "*", filters=[("author", "Ann")]) == {"b"}
    assert found(solr_receiver, "*", filters=[("color_s", "red"), ("size_l", "5")]) == {"a"}
    assert found(solr_receiver, "*", filters=[("note_t", "hello world")]) == {"b"}
    assert found(solr_receiver, "*", filters=[("last_modified", "2020-01-01T01:00:00+01:00")]) == {"c"}
    assert found(solr_receiver, "*", filters=[("depth", "1")]) == {"a"}
    assert found(solr_receiver, "*", filters=[("unheard_of_l", "1")]) == set()
    ordered = solr_receiver.search(SearchQuery(words="*", sort="-title", facets=["groups", "size_l", "source"]))
    assert [hit.id for hit in ordered.hits] == ["b", "a", "c"]
    assert ordered.facets == {
        "groups": {"g2": 2, "g1": 1},
        "size_l": {"5": 1, "1.5": 1},
        "source": {"site": 2, "other": 1},
    }
    assert ordered.hits[0].fields["size_l"] == 1.5
    assert ordered.hits[1].fields["color_s"] == "red"


def test_search_when_a_field_cannot_be_sorted_then_unsupported(solr_receiver: SolrReceiver) -> None:
    with pytest.raises(UnsupportedByIndex):
        solr_receiver.search(SearchQuery(words="*", sort="content"))


def test_search_when_hits_are_shown_then_snippets_mark_them_in_plain_text(solr_receiver: SolrReceiver) -> None:
    text = "Nothing here. " * 200 + "Then <b>Oracle</b> &amp; friends on demand. " + "More of the same. " * 200
    put(solr_receiver, document("a", content=text, title="A title"), document("b", content="no words", title="oracle"))

    hits = {hit.id: hit for hit in solr_receiver.search(SearchQuery(words="oracle")).hits}

    assert "<b>\ue000Oracle\ue001</b> &amp; friends" in hits["a"].snippet
    assert len(hits["a"].snippet) < 500
    assert hits["b"].snippet == "no words"
    assert "content" not in hits["a"].fields
    assert hits["a"].fields["title"] == "A title"


def test_search_when_paged_then_every_document_comes_once(solr_receiver: SolrReceiver) -> None:
    put(solr_receiver, *(document(f"d{number:02}", content="same") for number in range(25)))

    pages = [solr_receiver.search(SearchQuery(words="same", rows=10, start=start)) for start in (0, 10, 20)]

    assert [page.total for page in pages] == [25, 25, 25]
    assert [hit.id for page in pages for hit in page.hits] == [f"d{number:02}" for number in range(25)]


def test_snippet_when_a_text_has_no_sentences_then_its_passages_are_short(solr_receiver: SolrReceiver) -> None:
    rows = "\n".join(f"cell {number} of the table" for number in range(300))
    put(solr_receiver, document("a", content=f"{rows}\nvacuum cleaner\n{rows}\nThe vacuum starts. {rows}"))

    (hit,) = solr_receiver.search(SearchQuery(words="vacuum")).hits

    assert len(hit.snippet) < 520
    assert f"{HIT_START}vacuum{HIT_END} cleaner" in hit.snippet
    assert "… …" not in hit.snippet
