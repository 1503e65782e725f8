"""Hits and facets as ``search`` prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import InvalidFile, UnknownAttribute, UnsupportedByIndex
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import HIT_END, HIT_START, Batch, Receipt, SearchAnswer, SearchHit, SearchQuery
from searchcrawl.queries.search import read_known_fields, remove_marks, search
from searchcrawl.sources.loading import load_project


class Deaf:
    """A receiver without answers."""

    def begin(self, source: str, run: int) -> None:
        pass

    def deliver(self, batch: Batch) -> list[Receipt]:
        return []

    def end(self, outcome: str) -> None:
        pass


class Oracle(LocalReceiver):
    """A search index with one answer, and without a folder; ``asked`` is the last query."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        self.asked: SearchQuery | None = None

    def search(self, query: SearchQuery) -> SearchAnswer:
        self.asked = query
        snippet = f"a {HIT_START}word{HIT_END} here"
        hit = SearchHit(id="demo:0", score=1.5, snippet=snippet, fields=self.fields)
        return SearchAnswer(total=7, hits=[hit], facets={"host": {"a.example": 7}})


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

    found = remove_marks(search(oracle, SearchQuery(words="word", facets=["host"])))

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
        "facet_names": {"host": {}},
        "suggestion": None,
        "notes": [],
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


def test_search_when_attributes_are_named_then_asked_for_by_their_fields_and_answered_by_their_names() -> None:
    oracle = Oracle(url="http://a.example/", author="Ann", mimetype="text/html", Issued_dt="2024-01-01T00:00:00Z")
    fields = {"host": "host", "issued": "Issued_dt", "lastmodifieddate": "last_modified"}
    query = SearchQuery(
        words="word", filters=[("ISSUED", "2024-01-01")], sort="-LastModifiedDate", facets=["Host", "issued"]
    )

    found = search(oracle, query, fields=fields)

    assert oracle.asked is not None
    assert (oracle.asked.filters, oracle.asked.sort) == ([("Issued_dt", "2024-01-01")], "-last_modified")
    assert oracle.asked.facets == ["host", "Issued_dt"]
    assert oracle.asked.attributes == {"issued": "Issued_dt"}
    assert found["facets"] == {"Host": {"a.example": 7}, "issued": {}}
    assert found["hits"][0]["attributes"] == {
        "author": "Ann",
        "mimetype": "text/html",
        "Issued": "2024-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    "query", [{"filters": [("colour", "red")]}, {"sort": "colour"}, {"sort": "-colour"}, {"facets": ["colour"]}]
)
def test_search_when_nobody_has_such_an_attribute_then_one_clear_error(query: dict[str, Any]) -> None:
    with pytest.raises(UnknownAttribute, match=r"^unknown attribute: colour \(did you mean color\?\)$"):
        search(Oracle(), SearchQuery(words="word", **query), fields={"color": "color_s"})


def test_fields_when_source_files_are_broken_or_clash_then_that_is_why_a_name_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "searchcrawl.toml").write_text('contact = "a@b.example"\n', "utf-8")
    (tmp_path / "sources").mkdir()
    start = '[start]\nurls = ["http://a.test/"]\n[scope]\nallow_all = true\n[attributes]\n'
    for name, text in {
        "a": '"meta:v" = "version"\n"meta:c" = "color"',
        "b": '"meta:v" = "version"\n[attributes.types]\nversion = "date"',
        "c": '"meta:d" = "depth"',
        "d": '"meta:e" = "shade"',
    }.items():
        (tmp_path / "sources" / f"{name}.toml").write_text(f"{start}{text}\n", "utf-8")
    project = load_project(tmp_path)

    fields = read_known_fields(project, SearchQuery(words="*", sort="-Shade", facets=["mimetype"]))
    of_words = read_known_fields(project, SearchQuery(words="shade:dark http://a.example/"))
    with pytest.raises(InvalidFile) as clash:
        read_known_fields(project, SearchQuery(words="*", filters=[("Version", "1")]))
    with pytest.raises(UnknownAttribute) as unknown:
        read_known_fields(project, SearchQuery(words="*", facets=["color"]))

    assert fields["shade"] == of_words["shade"] == "shade_s"
    assert [error.file for error in clash.value.errors] == ["sources/a.toml", "sources/b.toml"]
    assert str(unknown.value).startswith("unknown attribute: color")
    assert str(unknown.value).endswith("(not read, for errors in it: sources/a.toml, sources/b.toml, sources/c.toml)")


class Teller(Oracle):
    """An index of somebody's own, which does not say that it hides anything."""

    hides_documents = False


def test_search_when_an_index_hides_nothing_then_a_search_as_a_user_is_refused() -> None:
    with pytest.raises(UnsupportedByIndex, match="Teller cannot be searched as a user: it hides nothing"):
        search(Teller(url="http://a.example/"), SearchQuery(words="word", principals={"user:anna"}))
