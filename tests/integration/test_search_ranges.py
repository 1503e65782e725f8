"""Beginnings of words, and ranges of numbers and dates: both indexes find the same (G1)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import HIT_END, HIT_START, SearchIndex, SearchQuery
from searchcrawl.index.solr.receiver import SolrReceiver
from searchcrawl.items import IndexedDocument
from tests.index_documents import listed, put

pytestmark = pytest.mark.solr

ATTRIBUTES = {"size": "dc.size_l", "due": "x-due_dt", "kind": "kind_s", "note": "note_t"}
WORDS = (
    "vacuum",
    "vacuumed",
    "Vacuity",
    "vaccine",
    "Übung",
    "uber",
    "full-text",
    "full-time",
    "東京都",
    "the",
    "theory",
    "İstanbul",
    "ΑΒΣΔ",
)


def documents() -> list[IndexedDocument]:
    chance = random.Random(7)
    made = []
    for number in range(120):
        day = datetime(2024, 11, 1, 12, tzinfo=UTC) + timedelta(
            days=chance.randrange(300), seconds=chance.randrange(99999)
        )
        fields: dict[str, Any] = {
            "source": "site", "url": f"http://a{number % 3}.test/vacant/{number}", "host": f"a{number % 3}.test",
            "depth": number % 5, "content_length": chance.choice([0, 10, 2**40]), "mimetype": "text/html",
            "content": " ".join(chance.sample(WORDS, 3)), "title": f"T{number}",
        }  # fmt: skip
        if number % 4:
            fields["last_modified"] = day
            fields["crawled_at"] = day.replace(microsecond=number % 3 * 300_000)
            fields["dc.size_l"] = chance.choice([0, 1, 2.5, -3, -2.75, 1e20, [4, 1], 7])
            fields["x-due_dt"] = day.isoformat().replace("+00:00", "Z")
            fields["kind_s"] = chance.choice(["vacation home", "Vac.x", "house"])
            fields["note_t"] = chance.choice(["vacuum cleaner", "nothing"])
        made.append(IndexedDocument(id=f"site:{number:03}", fields=fields))
    return made


DOCUMENTS = documents()


@pytest.fixture
def indexes(tmp_path: Path, solr_receiver: SolrReceiver) -> Iterator[tuple[SearchIndex, SearchIndex]]:
    local = LocalReceiver(tmp_path / "index")
    for index in (local, solr_receiver):
        for part in range(0, len(DOCUMENTS), 50):
            put(index, *DOCUMENTS[part : part + 50])
    yield local, solr_receiver
    local.close()


def find(index: SearchIndex, words: str, **page: int) -> list[str]:
    return listed(index, words, attributes=ATTRIBUTES, **page)


def having(field: str, low: Any = None, high: Any = None, *, below: bool = False) -> set[str]:
    """The documents with a value of a field within a range, by reading them all."""
    found = set()
    for each in DOCUMENTS:
        values = each.fields.get(field, [])
        for value in values if isinstance(values, list) else [values]:
            at = datetime.fromisoformat(value) if isinstance(value, str) else value
            if (low is None or at >= low) and (high is None or at < high or (at == high and not below)):
                found.add(each.id)
    return found


def day(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


#: What ranges find.
WANTED = {
    "modified:2025-01..2025-06": having("last_modified", day(2025, 1, 1), day(2025, 7, 1), below=True),
    "last_modified:2025": having("last_modified", day(2025, 1, 1), day(2026, 1, 1), below=True),
    "lastmodified:2024-12": having("last_modified", day(2024, 12, 1), day(2025, 1, 1), below=True),
    "modified:2025-03-01..": having("last_modified", day(2025, 3, 1)),
    "modified:..2025-01-15": having("last_modified", None, day(2025, 1, 16), below=True),
    "modified:2025-02-01T10:00..2025-02-20T10:00:00Z": having(
        "last_modified", day(2025, 2, 1, 10), day(2025, 2, 20, 10)
    ),
    **{
        f"crawled_at:{DOCUMENTS[number].fields['last_modified']:%Y-%m-%dT%H:%M:%S}{typed}": {DOCUMENTS[number].id}
        for number in (3, 5, 7, 10)
        for typed in ("", "Z", ".5", ".3Z")
    },
    "modified:..": having("last_modified"),
    "modified:1600..": having("last_modified"),
    "modified:..2300": having("last_modified"),
    "modified:0001..9998": having("last_modified"),
    "modified:2025-03..9998": having("last_modified", day(2025, 3, 1)),
    "modified:9998": set(),
    "modified:1000..1677": set(),
    "modified:2262..": set(),
    "modified:2300..1600": set(),
    "due:0001..9998": having("x-due_dt"),
    "due:1000..1600": set(),
    "due:2025-05": having("x-due_dt", day(2025, 5, 1), day(2025, 6, 1), below=True),
    "due:2025-02..": having("x-due_dt", day(2025, 2, 1)),
    "due:..2024": having("x-due_dt", None, day(2025, 1, 1), below=True),
    "due:..": having("x-due_dt"),
    "depth:1..3": having("depth", 1, 3),
    "depth:0.5..1.5": having("depth", 1, 1),
    "depth:2": having("depth", 2, 2),
    "depth:-5..0": having("depth", -5, 0),
    "depth:1e30": set(),
    "depth:..99999999999": having("depth"),
    "content_length:11..": having("content_length", 11),
    "size:-3..-2.75": having("dc.size_l", -3, -2.75),
    "size:..-2.8": having("dc.size_l", None, -2.8),
    "size:2..": having("dc.size_l", 2),
    "size:2.5": having("dc.size_l", 2.5, 2.5),
    "size:3..2": set(),
    "size:0..0": having("dc.size_l", 0, 0),
    "size:..": having("dc.size_l"),
    "size:many": set(),
    "size:1e400": set(),
    "size:-1e400..1": set(),
    "depth:1e400": set(),
    "depth:..1e400": set(),
    "content_length:1e300": set(),
    "depth:-1e300..1e300": having("depth"),
    "size:1..many": set(),
    "depth:1*": set(),
    "modified:2025-13": set(),
    "modified:yesterday..": set(),
    "depth:1..3 size:2..": having("depth", 1, 3) & having("dc.size_l", 2),
    "size:2.. -depth:1..3": having("dc.size_l", 2) - having("depth", 1, 3),
    "depth:1 OR depth:3..": having("depth", 1, 1) | having("depth", 3),
}


def test_ranges_when_asked_for_then_both_indexes_find_the_documents_with_such_values(
    indexes: tuple[SearchIndex, SearchIndex],
) -> None:
    for index in indexes:
        assert {words: set(find(index, words)) for words in WANTED} == WANTED


def with_word(*beginnings: str, field: str = "content") -> set[str]:
    """The documents one of whose words begins so."""
    texts = {each.id: str(each.fields.get(field, "")).lower().replace("ü", "u") for each in DOCUMENTS}
    return {name for name, text in texts.items() if any(f" {each}" in f" {text}" for each in beginnings)}


def test_beginnings_when_asked_for_then_both_indexes_find_the_words_that_begin_so(
    indexes: tuple[SearchIndex, SearchIndex],
) -> None:
    of_content = {
        "vacu*": with_word("vacu"),
        "VAC*": with_word("vac"),
        "vacuumed*": with_word("vacuumed"),
        "ub*": with_word("ub"),
        "Üb*": with_word("ub"),
        "the*": with_word("theory"),
        "full-te*": with_word("full-te"),
        "text-full-vac*": {each.id for each in DOCUMENTS if "full-text full-time" in each.fields["content"]}
        & with_word("vac"),
        "full*": with_word("full"),
        "東京*": with_word("東京"),
        "vacu* theo*": with_word("vacu") & with_word("theo"),
        "theo* -vacu*": with_word("theo") - with_word("vacu"),
        "İst*": with_word("i̇st"),
        "ΑΒΣ*": with_word("αβσ"),
        "xyz*": set(),
    }
    of_fields = {
        "kind:va*": with_word("va", field="kind_s"),
        "note:vacu*": with_word("vacu", field="note_t"),
        "content:vacu*": with_word("vacu"),
        "host:a1*": {each.id for each in DOCUMENTS if each.fields["host"] == "a1.test"},
        "url:vacan*": {each.id for each in DOCUMENTS},
        "source:si*": {each.id for each in DOCUMENTS},
        "source:it*": set(),
    }

    for index in indexes:
        assert {words: set(find(index, words)) for words in of_content} == of_content
        assert {words: set(find(index, words)) for words in of_fields} == of_fields
        snippet = next(iter(index.search(SearchQuery(words="vaccin*")).hits)).snippet
        assert snippet.partition(HIT_START)[2].partition(HIT_END)[0] == "vaccine"


def test_beginnings_when_very_many_words_begin_so_then_all_of_them_count(
    indexes: tuple[SearchIndex, SearchIndex],
) -> None:
    documents = [
        IndexedDocument(
            id=f"many:{number}",
            fields={"source": "many", "content": f"many{number:04}x", "kind_s": f"sort{number:04}y", "language": "en"},
        )
        for number in range(1_500)
    ]
    for index in indexes:
        put(index, *documents, source="many")
        found = [
            index.search(SearchQuery(words=words, attributes=ATTRIBUTES)).total
            for words in ("many*", "kind:sort*", "many00* -many0099x", "content:many*")
        ]
        assert found == [1_500, 1_500, 99, 1_500]


def test_offset_when_answers_are_read_in_parts_then_they_are_those_of_one(
    indexes: tuple[SearchIndex, SearchIndex],
) -> None:
    for index in indexes:
        whole = find(index, "vacu*")
        parts = [name for start in range(0, len(whole), 7) for name in find(index, "vacu*", start=start, rows=7)]

        assert sorted(parts) == sorted(whole)
        assert find(index, "vacu*", start=len(whole)) == []
