from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta

import pytest

from searchcrawl.index.query import (
    MAX_CHARS,
    MAX_TERMS,
    MAX_WORDS,
    AllOf,
    AnyOf,
    Everything,
    Nothing,
    Query,
    Range,
    Term,
    find_other_prefixes,
    parse,
    positive_terms,
    read_range,
    to_words,
)

SECOND = timedelta(seconds=1)


def word(text: str, field: str | None = None) -> Term:
    return Term(text=text, field=field)


def at(*parts: int) -> datetime:
    year, month, day, hour = (*parts, 0)[:4]
    return datetime(year, month, day, hour, tzinfo=UTC)


def phrase(text: str, field: str | None = None) -> Term:
    return Term(text=text, field=field, phrase=True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("oracle", word("oracle")),
        ("oracle demand", AllOf(required=(word("oracle"), word("demand")))),
        ('"oracle on  demand"', phrase("oracle on demand")),
        ("“oracle on demand”", phrase("oracle on demand")),
        ("a -b", AllOf(required=(word("a"),), excluded=(word("b"),))),
        ('a -"b c"', AllOf(required=(word("a"),), excluded=(phrase("b c"),))),
        ("a OR b", AnyOf(clauses=(word("a"), word("b")))),
        ("a OR b OR c", AnyOf(clauses=(word("a"), word("b"), word("c")))),
        (
            "a b OR c d",
            AllOf(required=(word("a"), AnyOf(clauses=(word("b"), word("c"))), word("d"))),
        ),
        ("title:oracle", word("oracle", "title")),
        ("Title:oracle", word("oracle", "title")),
        ('title:"on demand"', phrase("on demand", "title")),
        (
            "a -host:example.com:80",
            AllOf(required=(word("a"),), excluded=(word("example.com:80", "host"),)),
        ),
        ("url:http://a.example/x", word("http://a.example/x", "url")),
        ("日本語\u3000検索", AllOf(required=(word("日本語"), word("検索")))),
        ("git --force", AllOf(required=(word("git"), word("--force")))),
        ("full-text", word("full-text")),
        ("C++", word("C++")),
        # Nothing or everything is asked for: exclusions have something to exclude from.
        ("*", Everything()),
        ("* a", word("a")),
        ("* OR a", AnyOf(clauses=(Everything(), word("a")))),
        ("-a", AllOf(required=(Everything(),), excluded=(word("a"),))),
        ("-a -b", AllOf(required=(Everything(),), excluded=(word("a"), word("b")))),
        ("* -a", AllOf(required=(Everything(),), excluded=(word("a"),))),
        (
            "a OR -b",
            AnyOf(
                clauses=(
                    word("a"),
                    AllOf(required=(Everything(),), excluded=(word("b"),)),
                )
            ),
        ),
        # It is odd: text, or passed over.
        ("", Nothing()),
        ("  \t\n", Nothing()),
        ("- ! ?? -", Nothing()),
        ('""', Nothing()),
        ('"', Nothing()),
        ("-*", Nothing()),
        ("OR", Nothing()),
        ("OR a OR", word("a")),
        ("a OR OR b", AnyOf(clauses=(word("a"), word("b")))),
        ("a - b", AllOf(required=(word("a"), word("b")))),
        ('"a b', AllOf(required=(word("a"), word("b")))),
        ('a" b"', AllOf(required=(word("a"), phrase("b")))),
        ("title:", word("title:")),
        ("title: a", AllOf(required=(word("title:"), word("a")))),
        ('title:"a', AllOf(required=(word("title:"), word("a")))),
        ("http://a.example/", word("http://a.example/")),
        ("secret:a", word("secret:a")),
        ('secret:"a b"', phrase("secret:a b")),
        ("title:*", Nothing()),
        ("or", word("or")),
        # A word ends with a star, or is a range.
        ("vacu*", Term(text="vacu", prefix=True)),
        ("-vacu*", AllOf(required=(Everything(),), excluded=(Term(text="vacu", prefix=True),))),
        ("title:vacu*", Term(text="vacu", field="title", prefix=True)),
        ("full-te*", Term(text="full-te", prefix=True)),
        ('"vacu*"', Term(text="vacu*", phrase=True)),
        ("va*cu", Term(text="va*cu")),
        ("va*cu*", Term(text="va*cu*")),
        ("vacu**", Term(text="vacu**")),
        ("vacu-*", Term(text="vacu-*")),
        ("東京*", Term(text="東京")),
        ("depth:1..3", Range(field="depth", low=1, high=3, typed="1..3")),
        ("depth:..", Range(field="depth", typed="..")),
        ("depth:a..3", Range(field="depth", fault="'a' is no number", typed="a..3")),
        (
            "Modified:2025-01..2025-06",
            Range(
                field="last_modified",
                low=datetime(2025, 1, 1, tzinfo=UTC),
                high=datetime(2025, 7, 1, tzinfo=UTC),
                is_below=True,
                typed="2025-01..2025-06",
            ),
        ),
        ("title:1..3", Term(text="1..3", field="title")),
        ("from..to", Term(text="from..to")),
    ],
)
def test_parse_when_given_a_query_then_the_tree_says_it(words: str, expected: Query) -> None:
    assert parse(words) == expected


def test_parse_when_there_are_too_many_words_then_the_rest_is_ignored() -> None:
    query = parse("word " * 100_000)

    assert len(list(positive_terms(query))) == MAX_TERMS


def test_parse_when_there_are_too_many_beginnings_after_words_then_each_counts_as_two() -> None:
    query = parse(" ".join(f"full-te{number}*" for number in range(100)))

    assert len(list(positive_terms(query))) == MAX_TERMS / 2


@pytest.mark.parametrize("words", ["vacuum the ", "a.", "数据库", "x", "a\u0301"])
def test_parse_when_a_term_is_very_long_then_its_words_are_bounded(words: str) -> None:
    term = parse(f'"{words * 2000}"' if " " in words else words * 100_000)

    assert isinstance(term, Term)
    assert len(re.findall(r"[a-z]+|[\u4e00-\u9fff]", term.text)) <= MAX_WORDS
    assert len(term.text) <= MAX_CHARS


def test_parse_when_a_phrase_is_cut_then_its_first_words_are_looked_for() -> None:
    text = "oracle on demand " * 1000

    assert parse(f'"{text}"') == phrase(" ".join(text.split()[:MAX_WORDS]))


def test_parse_when_an_excluded_phrase_is_too_long_then_it_excludes_nothing() -> None:
    assert parse(f'a -"{"b " * 1000}"') == word("a")


def test_parse_when_given_any_text_then_it_answers_with_well_formed_terms() -> None:
    chance = random.Random(7)
    pieces = ["title:", "x:", "OR", *'"-*: a日\x00\udcff\ue000\\(^~']

    for _ in range(3000):
        query = parse("".join(chance.choices(pieces, k=chance.randrange(12))))
        for term in positive_terms(query):
            assert term.text.encode("utf-8").strip()


def test_positive_terms_when_some_are_excluded_then_only_the_others_are_told() -> None:
    query = parse('a -b c OR "d e" OR -f')

    assert list(positive_terms(query)) == [word("a"), word("c"), phrase("d e")]


def test_parse_when_attributes_are_known_then_their_names_may_stand_before_a_colon() -> None:
    attributes = {"dc.size": "dc.size_l", "x-y": "X-Y_s", "title": "title_s"}

    assert parse("DC.Size:3", attributes) == Range(field="dc.size_l", low=3, high=3, typed="3")
    assert parse('x-y:"a b"', attributes) == phrase("a b", "X-Y_s")
    # What every document has goes before.
    assert parse("title:a", attributes) == word("a", "title")
    assert parse("dc.size:3") == word("dc.size:3")
    assert find_other_prefixes('a title:b -DC.size:3 x-y:"c" http://a.example/ d:') == {"dc.size", "x-y", "http"}


@pytest.mark.parametrize(
    ("text", "low", "high", "is_below"),
    [
        ("2024-02", at(2024, 2, 1), at(2024, 3, 1), True),
        ("2024-12", at(2024, 12, 1), at(2025, 1, 1), True),
        ("2024", at(2024, 1, 1), at(2025, 1, 1), True),
        ("2024-2-29", at(2024, 2, 29), at(2024, 3, 1), True),
        ("..2024-02-28", None, at(2024, 2, 29), True),
        ("2024-02-28T12:00..", at(2024, 2, 28, 12), None, False),
        ("2024-02-28T12:00+02:00", at(2024, 2, 28, 10), at(2024, 2, 28, 10) + SECOND, True),
        ("2024-02-28T12:00:00.7", at(2024, 2, 28, 12), at(2024, 2, 28, 12) + SECOND, True),
        ("2023-02-29", "no date", None, False),
        ("9999", "no date", None, False),
        ("0000..", "no date", None, False),
        ("1..2..3", "no date", None, False),
    ],
)
def test_range_when_its_ends_are_years_months_or_days_then_they_are_meant_as_a_whole(
    text: str, low: datetime | str | None, high: datetime | None, is_below: bool
) -> None:
    found = read_range("last_modified", text)

    if isinstance(low, str):
        assert low in found.fault
        return
    wanted = [None if each is None else each.replace(tzinfo=UTC) for each in (low, high)]
    assert (found.fault, [found.low, found.high], found.is_below) == ("", wanted, is_below)


@pytest.mark.parametrize(
    "words",
    [
        'one "two words" -three title:four',
        "a OR b",
        "vacu* depth:1..3",
        "size:2.. -due:2025-01",
        "*",
        "-a",
        "x:y",
        'due:"2025-01-01 10:00.."',
        'modified:"2025-01-01 10:00" -size:""',
    ],
)
def test_to_words_when_a_tree_is_written_then_it_is_read_as_the_same_tree(words: str) -> None:
    attributes = {"size": "size_l", "due": "due_dt"}

    written = to_words(parse(words, attributes))

    assert parse(written, attributes) == parse(words, attributes)
