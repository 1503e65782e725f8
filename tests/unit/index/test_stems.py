from __future__ import annotations

from searchcrawl.index.forms import find_optional
from searchcrawl.index.query import Term
from searchcrawl.index_fields import LANGUAGES


def terms(words: str) -> list[Term]:
    return [Term(text=word) for word in words.split()]


def test_optional_when_words_are_repeated_then_each_has_its_languages_once() -> None:
    found = find_optional(terms("der la " * 60 + "anlage"), LANGUAGES)

    assert found == {Term(text="der"): ["da", "de", "nl", "no"], Term(text="la"): ["es", "fr", "it"]}


def test_optional_when_all_words_are_stop_words_of_a_language_then_it_requires_them() -> None:
    assert find_optional(terms("der die der"), LANGUAGES) == {Term(text="der"): ["da", "no"]}
    assert find_optional(terms("der der der"), ["de"]) == {}
