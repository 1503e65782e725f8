"""What the deltas of a feed add up to, and what the index has besides (K4)."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

import pytest
from sqlalchemy import func, select, update

from searchcrawl.store.batches import removal_table
from searchcrawl.store.documents import export_table, feed_table
from searchcrawl.store.documents.document_events import HELD_CHANGED
from searchcrawl.store.documents.feed_table import FeedDocument
from searchcrawl.store.engine.database import Database
from searchcrawl.store.feed_schema import feed_documents, feeds
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.states import DocumentState
from tests.unit.store.support_store import NOW_MS, SOURCE, row
from tests.unit.store.test_deliveries import present


@pytest.fixture
def feed(database: Database) -> int:
    return database.write(partial(feed_table.find_or_add, source_id=SOURCE, name="a")).id


def list_changed(database: Database, feed: int) -> dict[int, int]:
    """The version of each document that is to be in the next delta."""
    find = partial(export_table.find_indexed, source_id=SOURCE, after=0, limit=100, feed_id=feed)
    return {each.row.url_id: each.version for each in database.read(find)}


def list_gone(database: Database, feed: int) -> list[int]:
    find = partial(feed_table.find_gone, source_id=SOURCE, feed_id=feed, after=(0, 0))
    return [each.url_id for each in database.read(find)]


def stage(database: Database, feed: int, versions: dict[int, int | None]) -> None:
    found = [
        FeedDocument(url_id, row(database, url_id).key, b"%d" % url_id, version) for url_id, version in versions.items()
    ]
    database.write(partial(feed_table.stage, source_id=SOURCE, feed_id=feed, found=found))


def turn(database: Database, step: Any, feed: int) -> int:
    """Calls a step until nothing is left; returns how often."""
    return next(times for times in count() if not database.write(partial(step, source_id=SOURCE, feed_id=feed)))


def settle(database: Database, feed: int) -> None:
    database.write(partial(feed_table.note_file, feed_id=feed, file="f", number=1))
    turn(database, feed_table.settle_page, feed)


def remove(database: Database, ids: list[int]) -> None:
    with database.write_once() as transaction:
        removal_table.seal(transaction, SOURCE, 1, NOW_MS, ids, counted=False)
        removal_table.note_removed(transaction, SOURCE, ids)


def test_delta_when_it_counts_then_it_is_what_the_next_one_is_compared_with(
    database: Database, feed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_table, "PAGE_ROWS", 2)
    first, second, third = present(database, ["a", "b", "c"])
    versions = list_changed(database, feed)
    stage(database, feed, dict(versions))
    settle(database, feed)
    remove(database, [first])
    with database.write_once() as transaction:
        transaction.execute(update(documents).where(documents.c.url_id == second).values(indexed_version=NOW_MS + 9))

    assert versions.keys() == {first, second, third}
    assert (list_changed(database, feed), list_gone(database, feed)) == ({second: NOW_MS + 9}, [first])

    stage(database, feed, {first: None, second: NOW_MS + 9})
    settle(database, feed)

    assert (list_changed(database, feed), list_gone(database, feed)) == ({}, [])
    (left,) = database.read(partial(feed_table.list_feeds, source_id=SOURCE))
    assert (left.number, left.file) == (1, None)


def test_delta_when_it_never_counted_then_nothing_of_it_is_left(
    database: Database, feed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_table, "PAGE_ROWS", 2)
    known, *new = present(database, ["a", "b", "c"])
    stage(database, feed, {known: list_changed(database, feed)[known]})
    settle(database, feed)
    versions = list_changed(database, feed)
    stage(database, feed, {**versions, known: None})

    turns = turn(database, feed_table.unstage_page, feed)
    settle(database, feed)

    assert (turns, versions.keys()) == (2, set(new))
    assert (list_changed(database, feed), list_gone(database, feed)) == (versions, [])


def test_delta_when_an_id_is_that_of_another_url_then_the_old_document_is_gone_and_the_new_one_came(
    database: Database, feed: int
) -> None:
    (url_id,) = present(database, ["a"])
    stage(database, feed, list_changed(database, feed))  # type: ignore[arg-type]  # no version is None
    settle(database, feed)
    with database.write_once() as transaction:
        transaction.execute(update(urls).where(urls.c.id == url_id).values(key=12345))

    assert (list_changed(database, feed).keys(), list_gone(database, feed)) == ({url_id}, [url_id])


def test_delta_when_urls_got_new_rows_then_none_of_their_documents_is_gone_and_new_at_once(
    database: Database, feed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_table, "PAGE_ROWS", 1)
    left, same, changed = present(database, ["a", "b", "c"])
    versions = list_changed(database, feed)
    later = {left: 97, same: 98, changed: 99}
    with database.read_once() as transaction:
        keys = {row.id: row.key for row in transaction.execute(select(urls.c.id, urls.c.key))}
    told = [FeedDocument(new, keys[old], b"%d" % new, versions[old]) for old, new in later.items()]
    # What a comparison added: the new row is there as well.
    told.append(told[1]._replace(url_id=same))
    database.write(partial(feed_table.stage, source_id=SOURCE, feed_id=feed, found=told))
    settle(database, feed)
    remove(database, [left])
    with database.write_once() as transaction:
        transaction.execute(update(documents).where(documents.c.url_id == changed).values(indexed_version=NOW_MS + 9))

    move = partial(feed_table.move_page, source_id=SOURCE, feed_id=feed)
    after, moves = database.write(partial(move, after=(0, 0))), 0
    while after is not None:
        after, moves = database.write(partial(move, after=after)), moves + 1

    assert moves == len(later)
    assert (list_changed(database, feed), list_gone(database, feed)) == ({changed: NOW_MS + 9}, [left])


def test_documents_when_deltas_may_have_them_then_they_are_told_again_or_removed(database: Database, feed: int) -> None:
    known, other, new = present(database, ["a", "b", "c"])
    versions = list_changed(database, feed)
    stage(database, feed, {known: versions[known], other: versions[other]})
    settle(database, feed)
    # This delta counted in a store that is older than a later one.
    stage(database, feed, {other: None})
    database.write(partial(feed_table.note_file, feed_id=feed, file="f", number=2))
    told = [FeedDocument(url_id, row(database, url_id).key, b"%d" % url_id) for url_id in (known, other, new)]
    for _ in range(2):
        database.write(partial(feed_table.note_told, source_id=SOURCE, found=told))
    turn(database, feed_table.settle_page, feed)
    remove(database, [other])

    assert (list_changed(database, feed).keys(), list_gone(database, feed)) == ({new}, [other])

    remove(database, [new])

    assert (list_changed(database, feed), list_gone(database, feed)) == ({}, [other, new])


@pytest.mark.parametrize(
    ("values", "is_readable"),
    [
        ({"state": DocumentState.PRESENT}, True),
        ({"state": DocumentState.QUARANTINED, "held_state": DocumentState.PRESENT}, True),
        ({"state": DocumentState.QUARANTINED, "held_state": HELD_CHANGED}, True),
        ({"state": DocumentState.QUARANTINED, "held_state": DocumentState.CACHED}, False),
        ({"state": DocumentState.QUARANTINED}, False),
        ({"state": DocumentState.CACHED}, False),
        ({"fields_digest": None}, False),
        ({"indexed_version": 0}, False),
    ],
)
def test_document_when_the_cache_has_another_text_than_the_index_then_it_is_counted_and_not_removed(
    database: Database, feed: int, values: dict[str, Any], is_readable: bool
) -> None:
    (url_id,) = present(database, ["a"])
    with database.write_once() as transaction:
        transaction.execute(update(documents).values({name: value and int(value) for name, value in values.items()}))

    unreadable = [
        database.read(partial(export_table.count_unreadable, source_id=SOURCE, feed_id=each)) for each in (None, feed)
    ]

    assert (url_id in list_changed(database, feed), unreadable) == (is_readable, [not is_readable] * 2)
    assert list_gone(database, feed) == []


def test_feed_when_dropped_then_nothing_is_left_and_others_stay(
    database: Database, feed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_table, "PAGE_ROWS", 2)
    other = database.write(partial(feed_table.find_or_add, source_id=SOURCE, name="b")).id
    ids = present(database, ["a", "b", "c"])
    for each in (feed, other):
        stage(database, each, dict.fromkeys(ids, 5))

    turn(database, feed_table.drop_page, feed)

    with database.read_once() as transaction:
        left = transaction.execute(select(feed_documents.c.feed_id, func.count()).group_by("feed_id")).all()
        names = transaction.execute(select(feeds.c.name)).scalars().all()
    assert (left, names) == ([(other, 3)], ["b"])
