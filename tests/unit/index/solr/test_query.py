from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.query import parse
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.index.solr.query import Forms, build_parameters, render
from searchcrawl.index_fields import LANGUAGES


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("*", "*:*"),
        ("", "-*:*"),
        ("title:oracle", 'title:"oracle"'),
        ('author:"Ann Lee"', 'author:"Ann Lee"'),
        ("host:example.com", 'host_words:"example.com"'),
        ("title:a OR title:b", '(title:"a" OR title:"b")'),
        ("title:a title:b", '(+title:"a" +title:"b")'),
    ],
)
def test_render_when_parsed_then_is_lucenes_syntax(words: str, expected: str) -> None:
    assert render(parse(words)) == expected


@pytest.mark.parametrize(
    "typed",
    [
        "title:x\\",
        "title:{!func}x",
        "title:a*b?c~2",
        'title:x^9/.*/[a\\"TO',
        "title:_query_:x",
        "title:\\u0022)OR(id:x",
        "NOT l'AND OR:TO OR d'OR",
        "東京*:*都 (漢字) 漢字",
    ],
)
def test_render_when_the_text_has_syntax_then_it_stays_within_quotes(typed: str) -> None:
    rendered = render(parse(typed), Forms(["en", "fr", "ja", "zh"]))

    outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", rendered)
    assert re.fullmatch(r"(?:[a-z_:()+^0-9. 東京都漢字]| OR )*", outside)


def test_parameters_when_words_are_excluded_then_they_are_filters() -> None:
    found = build_parameters(SearchQuery(words="title:a -title:b"))

    assert found["q"] == '(+title:"a")'
    assert found["fq"] == ['{!lucene q.op=OR cache=false}*:* -title:"b"']


def test_parameters_when_filters_have_syntax_then_it_is_text() -> None:
    query = SearchQuery(words="*", source="a b", groups=['x"y', "z)"], filters=[("title", "{!x}"), ("depth", "1")])

    found = build_parameters(query)

    assert found["fq"] == [
        "{!term f=source}a b",
        '{!lucene q.op=OR}groups:("x\\"y" "z)")',
        "{!term f=title_exact}{!x}",
        "{!term f=depth}1",
    ]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("x_s", "a b", "{!term f=x_s}a b"),
        ("x_t", "a b", "{!term f=x_exact}a b"),
        ("x_l", "5", "{!term f=x_l}5.0"),
        ("x_l", "five", "-*:*"),
        ("x_l", "1e400", "-*:*"),
        ("x_dt", "2026-01-02", "{!term f=x_dt}2026-01-02T00:00:00Z"),
        ("x_dt", "soon", "-*:*"),
        # It can match nothing, and asks for nothing.
        ("depth", "x", "-*:*"),
        ("depth", "1 OR 2", "-*:*"),
        ("depth", "9" * 30, "-*:*"),
        ("crawled_at", "yesterday", "-*:*"),
    ],
)
def test_parameters_when_a_filter_names_a_field_then_its_kind_decides(field: str, value: str, expected: str) -> None:
    assert build_parameters(SearchQuery(words="*", filters=[(field, value)]))["fq"] == [expected]


@pytest.mark.parametrize("name", ["content", "a b_s", "f}x_s", "", "x v=$q", "日本_s", "color"])
def test_parameters_when_a_name_is_no_field_then_unsupported(name: str) -> None:
    with pytest.raises(UnsupportedByIndex):
        build_parameters(SearchQuery(words="*", filters=[(name, "v")]))
    with pytest.raises(UnsupportedByIndex):
        build_parameters(SearchQuery(words="*", facets=[name]))
    with pytest.raises(UnsupportedByIndex):
        build_parameters(SearchQuery(words="*", sort=f"-{name}"))


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (None, "score desc,id asc"),
        ("-last_modified", "last_modified desc,id asc"),
        ("title", "title_exact asc,id asc"),
        ("-x_t", "x_exact desc,id asc"),
        ("x_l", "x_l asc,id asc"),
    ],
)
def test_parameters_when_sorted_then_the_id_breaks_ties(sort: str | None, expected: str) -> None:
    assert build_parameters(SearchQuery(words="*", sort=sort))["sort"] == expected


def test_render_when_the_index_holds_languages_then_words_are_asked_for_in_their_forms_and_phrases_are_not() -> None:
    words = 'title:Barometers content:"two words" author:Smith'

    assert render(parse(words), Forms(["de", "en"])) == (
        '(+(title:"Barometers" OR title_txt_de:barometers^2.0 OR title_txt_en:barometers^2.0)'
        ' +content:"two words" +author:"Smith")'
    )


def count_clauses(parameters: Mapping[str, str]) -> int:
    return parameters["asked"].count(":") + parameters["near"].count(":")


def test_parameters_when_there_are_many_words_and_languages_then_solr_takes_the_clauses() -> None:
    words, some = " ".join(f"word{number}" for number in range(128)), " ".join(f"word{number}" for number in range(100))

    assert count_clauses(build_parameters(SearchQuery(words=words), LANGUAGES)) < 1024
    few = build_parameters(SearchQuery(words=some), LANGUAGES)
    assert count_clauses(few) < 1024
    assert few["asked"].index("content_txt_sv:word0^") < few["asked"].index('"word1"')


def test_render_when_words_are_repeated_then_solr_is_asked_for_each_once() -> None:
    assert render(parse("der " * 126 + "anlage"), Forms(LANGUAGES)) == render(parse("der anlage"), Forms(LANGUAGES))


def test_parameters_when_words_may_follow_each_other_then_documents_in_which_they_do_come_first() -> None:
    found = build_parameters(SearchQuery(words='quick "brown fox" title:a jumps -dog'))

    assert found["q"] == "{!bool must=$asked should=$near}"
    assert found["near"] == 'title:"quick jumps"^2.0 OR content:"quick jumps"^2.0 OR (*:* -*:*)'
    assert found["asked"].startswith('(+(title:"quick"^3.0 OR ')
    assert not {"asked", "near"} & build_parameters(SearchQuery(words="quick title:a")).keys()


def test_query_when_no_snippets_are_wanted_then_solr_reads_no_text() -> None:
    found = build_parameters(SearchQuery(words="*", has_snippets=False))

    assert found["fl"] == "id,url,source,duplicates,text_signature"
    assert not [name for name in found if name.startswith("hl")]
