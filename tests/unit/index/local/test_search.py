"""Snippets of the embedded index, and what tells whether a hit is a near copy: it is read without the rest of it."""

from __future__ import annotations

import random
import re

import orjson
import pytest

from searchcrawl.index.local.search import NearFields, build_hit_pattern, cut_snippet
from searchcrawl.index.query import parse, positive_terms
from searchcrawl.index.receiver import HIT_END, HIT_START


def pattern(words: str) -> re.Pattern[str] | None:
    return build_hit_pattern(positive_terms(parse(words)), is_stop_word=lambda word: word.lower() in {"on", "the"})


def shown(text: str, words: str) -> str:
    return cut_snippet(text, pattern(words)).replace(HIT_START, "[").replace(HIT_END, "]")


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Oracle on demand", "oracle demand", "[Oracle] on [demand]"),
        ("Oracle on demand", '"oracle on demand"', "[Oracle on demand]"),
        ("Oracle, on  demand", '"oracle on demand"', "[Oracle, on demand]"),
        ("oracle technology on demand", '"oracle on on demand"', "[oracle] technology on [demand]"),
        ("oracles oracle", "oracle", "oracles [oracle]"),
        ("全文検索エンジン", "検索", "全文[検索]エンジン"),
        ("full text", "full-text", "[full text]"),
        ("a.b (c) [d]", "a.b", "[a.b] (c) [d]"),
        ("Ｆｕｌｌ width, fuller", "FULL", "[Ｆｕｌｌ] width, fuller"),
        ("Ärger ÉTÉ été_ ÀB", "arger ete", "[Ärger] [ÉTÉ] [été]_ ÀB"),
        ("a\nfull\nfull", "full", "a [full] [full]"),
        ("nothing here", "absent", "nothing here"),
        ("nothing here", "*", "nothing here"),
        ("lines\n\n and\ttabs", "and", "lines [and] tabs"),
        ("", "word", ""),
        # Marks in the text itself are left out.
        (f"an {HIT_START}evil{HIT_END} word", "word", "an evil [word]"),
    ],
)
def test_snippet_when_the_text_is_short_then_it_is_whole_and_hits_are_marked(
    text: str, words: str, expected: str
) -> None:
    assert shown(text, words) == expected


def test_snippet_when_the_text_is_long_then_the_passage_with_most_different_hits_is_shown() -> None:
    text = "oracle oracle oracle " + "filler " * 200 + "an oracle gives demand " + "filler " * 200

    found = shown(text, "oracle demand")

    assert "an [oracle] gives [demand] filler" in found
    assert found.startswith("… filler")
    assert found.endswith("filler …")


def test_snippet_when_the_text_has_no_blanks_then_it_is_cut_all_the_same() -> None:
    found = shown("検" * 1000 + "索引" + "引" * 1000, "索引")

    assert "[索引]" in found
    assert len(found) < 260


def test_snippet_when_given_any_text_then_marks_are_paired_and_the_length_is_bounded() -> None:
    chance = random.Random(3)
    pieces = ["oracle", "on", "demand", " ", " ", "\n", ".", "検索", "x" * 300, HIT_START, "é", "-"]
    hits = pattern('oracle "on demand" 検索')

    for _ in range(500):
        found = cut_snippet("".join(chance.choices(pieces, k=chance.randrange(200))), hits)
        bare = re.sub(f"{HIT_START}[^{HIT_START}{HIT_END}]+{HIT_END}", "", found)
        assert HIT_START not in bare
        assert HIT_END not in bare
        assert len(found.replace(HIT_START, "").replace(HIT_END, "")) <= 244


FIELDS = {
    "content": 'A text with "source":"evil", \\"text_signature\\":\\"0\\" and \\',
    "title": '"source":"title"',
    "url": 'http://a.test/"x"',
    "duplicates": ["http://a.test/1", "http://a.test/2"],
    "text_signature": "1" + "0f" * 64,
    "source": "demo",
}


def test_fields_when_a_text_looks_like_them_then_they_are_read_as_they_were_stored() -> None:
    fields = NearFields(orjson.dumps(FIELDS))

    assert {name: fields[name] for name in FIELDS} == FIELDS
    assert dict(fields) == FIELDS
    assert len(fields) == len(FIELDS)


def test_fields_when_a_document_has_no_signature_then_there_is_none() -> None:
    fields = NearFields(orjson.dumps({"content": '"text_signature":"1"', "source": "demo"}))

    assert fields.get("text_signature", "") == ""
    with pytest.raises(KeyError):
        fields["text_signature"]
