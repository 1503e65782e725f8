"""Which links count for which document, and what tells that texts are to be collected anew (C8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from sqlalchemy import update

from searchcrawl.delivery.anchors import take_back_texts
from searchcrawl.store import source_table
from searchcrawl.store.documents import anchor_table
from searchcrawl.store.documents.anchor_table import Successors
from searchcrawl.store.engine.database import Database
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.states import DocumentState, Leaving
from searchcrawl.store.urls import link_table
from searchcrawl.store.urls.link_table import LinkTexts
from tests.unit.store.support_store import SOURCE, add, store


def link(database: Database, page: int, texts: Mapping[int, Sequence[str]], title: str = "") -> None:
    database.write(link_table.store, {page: list(texts)}, {page: LinkTexts(title, texts)})


def set_document(database: Database, url_id: int, **values: object) -> None:
    with database.write_once() as transaction:
        transaction.execute(update(documents).where(documents.c.url_id == url_id).values(**values))


def end_visit(database: Database, url_id: int, code: int) -> None:
    with database.write_once() as transaction:
        transaction.execute(update(urls).where(urls.c.id == url_id).values(code=code))


def counting(database: Database) -> list[int]:
    return [page.url_id for page in database.read(anchor_table.load_pages, SOURCE, after=0)]


def describe(database: Database) -> str:
    return database.read(anchor_table.describe, SOURCE)


def frozen(database: Database, url_ids: Sequence[int]) -> dict[int, list[str]]:
    return database.read(anchor_table.load, url_ids)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], [1, 2, 3, 4]),
        ([(1, 2), (2, 3)], [3, 3, 3, 4]),
        ([(1, 2), (2, 1)], [1, 2, 3, 4]),
        ([(1, 4), (3, 3)], [4, 2, 3, 4]),
    ],
)
def test_successors_when_they_are_followed_then_lead_to_the_end_or_nowhere(
    pairs: list[tuple[int, int]], expected: list[int]
) -> None:
    assert [Successors(pairs).follow(url_id) for url_id in range(1, 5)] == expected


@pytest.mark.parametrize(
    "values",
    [
        {"leaving": int(Leaving.EVIDENCE)},
        {"state": int(DocumentState.QUARANTINED)},
        {"state": int(DocumentState.NONE)},
        {"code": 911},
    ],
    ids=["leaving", "in quarantine", "gone", "not indexed"],
)
def test_links_when_their_page_does_not_stay_in_the_index_then_do_not_count(
    database: Database, values: dict[str, int]
) -> None:
    ids = add(database, ["a", "b", "c"])
    store(database, ids)
    before = describe(database)
    assert (counting(database), describe(database)) == (ids, before)

    set_document(database, ids[1], **values)

    assert counting(database) == [ids[0], ids[2]]
    assert describe(database) != before


def test_links_when_copies_redirects_or_changes_come_then_texts_are_to_be_collected_anew(database: Database) -> None:
    old, target, copy, survivor = ids = add(database, ["old", "target", "copy", "survivor"])
    store(database, [target, copy, survivor])
    seen = [describe(database)]

    end_visit(database, old, 953)
    link(database, old, {target: ()})
    seen.append(describe(database))
    set_document(database, copy, code=909, duplicate_of=survivor)
    seen.append(describe(database))
    set_document(database, target, last_changed_ms=77)
    seen.append(describe(database))
    end_visit(database, old, 404)
    seen.append(describe(database))

    assert len(set(seen)) == len(seen)
    end_visit(database, old, 954)
    successors = database.read(anchor_table.load_successors, SOURCE)
    assert [successors.follow(url_id) for url_id in ids] == [target, target, survivor, survivor]


def test_texts_when_pages_are_forgotten_then_are_taken_back_from_where_they_led(database: Database) -> None:
    first, second, old, target, other = ids = add(database, ["first", "second", "old", "target", "other"])
    store(database, [first, second, target, other], state=DocumentState.PRESENT)
    end_visit(database, old, 953)
    link(database, old, {target: ()})
    link(database, first, {old: ("Secret Name",), other: ("same",)})
    link(database, second, {other: ("Same", "more")})
    with database.write_once() as transaction:
        anchor_table.freeze(transaction, SOURCE, {target: "secret name", other: "Same\nmore", second: "kept"})
        source_table.note(transaction, SOURCE, anchors="all")

        take_back_texts(transaction, SOURCE, [first])

        assert source_table.find(transaction, SOURCE, "anchors") is None
        waiting = transaction.execute(
            documents.select().with_only_columns(documents.c.url_id).where(documents.c.state == DocumentState.CACHED)
        )
        assert {row.url_id for row in waiting} == {target, other}
    assert frozen(database, ids) == {other: ["more"], second: ["kept"]}
