"""The queue: rows are admitted, claimed, settled, and given back after a crash (D1, D7)."""

from __future__ import annotations

import pytest

from searchcrawl.items import CANONICAL_ETAG
from searchcrawl.store.documents import document_table
from searchcrawl.store.documents.document_table import Confirmed
from searchcrawl.store.engine.database import Database
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import url_queries, url_queue, url_table
from tests.unit.store.support_store import (
    NOW_MS,
    SOURCE,
    add,
    claim,
    document,
    fetch_states,
    row,
    settle,
    store,
)

TODO, FETCHING, SETTLED = FetchState.TODO, FetchState.FETCHING, FetchState.SETTLED


def test_add_when_rows_are_new_then_they_are_to_do_unless_a_rule_refused_them(database: Database) -> None:
    good = add(database, ["a"])
    bad = add(database, ["b"], code=955, rule="scope.include_hosts: no include matches")

    assert fetch_states(database, good + bad) == [TODO, SETTLED]
    assert (row(database, bad[0]).code, row(database, bad[0]).due_ms) == (955, None)
    assert claim(database) == good


def test_known_when_keys_are_asked_for_then_only_rows_that_are_there(database: Database) -> None:
    ids = add(database, ["a", "b"], depth=3)
    key = row(database, ids[0]).key

    found = database.read(url_table.find_known, SOURCE, [key, 5])
    elsewhere = database.read(url_table.find_known, SOURCE + 1, [key])

    assert [(one.id, one.key, one.depth, one.fetch_state, one.code) for one in found] == [(ids[0], key, 3, 0, 0)]
    assert elsewhere == []


def test_claim_when_rows_differ_in_depth_then_the_nearest_come_first_and_none_twice(database: Database) -> None:
    deep, near = add(database, ["a", "b"], depth=5), add(database, ["c", "d"], depth=1)

    first, second, third = claim(database, limit=3), claim(database), claim(database)

    assert (first, second, third) == ([*near, deep[0]], [deep[1]], [])
    assert set(fetch_states(database, deep + near)) == {FETCHING}


def test_claim_when_rows_were_visited_then_those_due_before_the_horizon_follow(database: Database) -> None:
    early, late = add(database, ["a"]), add(database, ["b"])
    never, fresh = add(database, ["c"]), add(database, ["d"])
    claim(database, limit=3)
    settle(database, early, due_ms=NOW_MS - 5)
    settle(database, late, due_ms=NOW_MS + 5)
    settle(database, never, due_ms=None)

    assert claim(database, horizon_ms=NOW_MS) == [*fresh, *early]


def test_claim_when_a_retry_has_a_pause_then_not_before_it_is_over(database: Database) -> None:
    ids = add(database, ["a"])
    claim(database)
    settle(database, ids, fetch_state=TODO, code=503, attempts=1, due_ms=NOW_MS + 1000)

    due_ms = database.read(url_table.find_next_due_ms, SOURCE)

    assert claim(database) == []
    assert due_ms == NOW_MS + 1000


def test_claim_when_a_document_is_known_then_it_carries_validators_unless_forced(database: Database) -> None:
    ids = add(database, ["a"])
    store(database, ids)
    settle(database, ids)

    plain = database.write(url_table.claim, SOURCE, 1, limit=9, now_ms=NOW_MS, horizon_ms=NOW_MS, forced=False)
    database.write(url_table.release, ids)
    forced = database.write(url_table.claim, SOURCE, 1, limit=9, now_ms=NOW_MS, horizon_ms=NOW_MS, forced=True)

    assert [(one.etag, one.body_digest, one.fields_digest) for one in plain] == [('"1"', b"body 1", b"fields")]
    assert [(one.etag, one.body_digest, one.fields_digest) for one in forced] == [(None, None, b"fields")]


@pytest.mark.parametrize("etag", ['"2"', None])
def test_claim_when_a_header_named_the_canonical_page_then_no_validators_until_it_was_read_without(
    database: Database, etag: str | None
) -> None:
    ids = add(database, ["a"])
    store(database, ids, etag=CANONICAL_ETAG, last_modified="then")
    settle(database, ids)

    def ask() -> list[tuple[str | None, str | None, bytes | None]]:
        found = database.write(url_table.claim, SOURCE, 1, limit=9, now_ms=NOW_MS, horizon_ms=NOW_MS, forced=False)
        database.write(url_table.release, ids)
        return [(one.etag, one.last_modified, one.body_digest) for one in found]

    named = ask()
    database.write(document_table.confirm, [Confirmed(url_id=ids[0], etag=etag, read=True)])

    assert named == [(None, None, b"body 1")]
    assert ask() == [(etag, "then", b"body 1")]


def test_recover_when_a_process_died_then_its_rows_are_to_do_again(database: Database) -> None:
    held = add(database, ["a", "b"])
    claim(database)
    done = add(database, ["c"])
    settle(database, done)

    count = database.write(url_queue.recover, SOURCE, stalled=False).claims

    assert count == 2
    assert fetch_states(database, held + done) == [TODO, TODO, SETTLED]


def test_settle_when_no_request_was_sent_then_the_time_of_the_last_fetch_stands(database: Database) -> None:
    ids = add(database, ["a"])
    settle(database, ids, fetched_ms=NOW_MS)

    settle(database, ids, code=955, rule="scope.depth: depth = 1", fetched_ms=None, due_ms=None)

    found = row(database, ids[0])
    assert (found.code, found.rule, found.last_fetched_ms) == (955, "scope.depth: depth = 1", NOW_MS)


def test_count_todo_when_rows_are_due_later_then_they_are_not_counted(database: Database) -> None:
    add(database, ["a"])
    settle(database, add(database, ["b"]), due_ms=NOW_MS)
    settle(database, add(database, ["c"]), due_ms=NOW_MS + 1)

    count = database.read(url_queue.count_todo, SOURCE, NOW_MS)

    assert count == 2


def test_b10_claim_when_the_date_of_its_author_is_over_then_the_page_is_asked_for_whole(database: Database) -> None:
    ids = add(database, ["a", "b", "c"])
    settle(database, ids)
    for url_id, moment_ms in zip(ids, (NOW_MS - 1, NOW_MS, None), strict=True):
        store(database, [url_id], unavailable_ms=moment_ms)

    claims = database.write(url_table.claim, SOURCE, 1, limit=9, now_ms=NOW_MS, horizon_ms=NOW_MS, forced=False)

    found = {one.url_id: one.etag is None and one.body_digest is None for one in claims}
    assert found == dict(zip(ids, (True, False, False), strict=True))


def test_b10_date_when_the_page_is_read_again_then_is_the_one_that_it_says_now(database: Database) -> None:
    ids = add(database, ["a", "b"])
    settle(database, ids)
    store(database, ids, unavailable_ms=5)

    database.write(
        document_table.confirm,
        [Confirmed(url_id=ids[0], read=True), Confirmed(url_id=ids[1], unavailable_ms=7)],
    )

    assert [document(database, url_id).unavailable_ms for url_id in ids] == [None, 5]


def test_claim_when_the_clock_was_set_back_then_rows_to_be_tried_again_do_not_wait_for_it(database: Database) -> None:
    ahead, soon = add(database, ["ahead", "soon"])
    settle(database, [ahead], fetch_state=TODO, code=503, attempts=1, due_ms=NOW_MS + 86_400_000)
    settle(database, [soon], fetch_state=TODO, code=503, attempts=1, due_ms=NOW_MS + 60_000)

    assert claim(database) == [ahead]


def test_warned_urls_when_counted_then_are_those_of_the_source_by_code(database: Database) -> None:
    for name, code in (("a", 965), ("b", 965), ("c", 959), ("d", 404), ("e", 200)):
        settle(database, add(database, [name]), code=code)

    counted = database.read(url_queries.count_warned_urls, SOURCE)
    elsewhere = database.read(url_queries.count_warned_urls, SOURCE + 1)

    assert counted == {965: 2, 959: 1}
    assert elsewhere == {}
