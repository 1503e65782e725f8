from __future__ import annotations

from searchcrawl.index.local.query import QueryBuilder
from searchcrawl.index.receiver import SearchQuery
from searchcrawl.index_fields import LANGUAGES


def test_build_when_words_are_repeated_then_the_index_is_asked_for_each_once() -> None:
    once, often = (
        repr(QueryBuilder().build(SearchQuery(words=words), LANGUAGES))
        for words in ("der der anlage", "der " * 126 + "anlage")
    )

    # Only the phrase of words that follow each other is longer.
    assert once.count("Regex") == often.count("Regex") > 0
    assert once.count("anlage") == often.count("anlage")
