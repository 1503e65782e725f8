"""Each change of a row moves its URL from one class of the run to another, in the transaction of the change (J1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import update

from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs.deletion import Over, purge_urls
from searchcrawl.store.schema import urls
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import forget_table, orphan_table, review_table, url_classes, url_queue, url_table
from searchcrawl.store.urls.fetch_events import REFUSED_LATER
from searchcrawl.store.urls.url_table import Settled
from tests.unit.store.support_store import NOW_MS, SOURCE, add, claim, claim_again

RUN = 7
LATER = NOW_MS + 1


def count(database: Database, work: Callable[[Transaction], object], *, run: int = RUN) -> dict[str, int]:
    """What ``work`` changes in a run; the sum of the changes is always what the table says before and after."""
    with database.write_once() as transaction:
        before = url_classes.count(transaction, SOURCE, run, NOW_MS)
        tally = url_classes.open_tally(transaction, run, NOW_MS)
        work(transaction)
        after = url_classes.count(transaction, SOURCE, run, NOW_MS)
    changes = {name: amount for name, amount in tally.changes.items() if amount}
    assert changes == {
        name: after[name] - before[name] + tally.forgotten[name] for name in after if after[name] != before[name]
    }
    return changes


def settle(database: Database, url_ids: Sequence[int], *, run: int = RUN, **values: object) -> dict[str, int]:
    given = {"code": 200, "due_ms": LATER, "fetched_ms": NOW_MS, **values}
    visits = [Settled(url_id=url_id, **given) for url_id in url_ids]  # type: ignore[arg-type]
    database.write(claim_again, url_ids)
    return count(database, lambda transaction: url_table.settle(transaction, visits), run=run)


def test_add_when_rows_are_new_then_to_fetch_and_refused_ones_rejected(database: Database) -> None:
    def work(transaction: Transaction) -> None:
        rows = [
            url_table.NewUrl(key=number, url=f"http://a.test/{number}", host_id=1, depth=1, code=code)
            for number, code in enumerate((0, 0, 955))
        ]
        url_table.add(transaction, SOURCE, rows, NOW_MS)

    assert count(database, work) == {"to_fetch": 2, "rejected": 1, "discovered": 3}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"code": 200}, "fetched"),
        ({"code": 911}, "fetched"),
        ({"code": 909}, "fetched"),
        ({"code": 954, "redirects": "[]"}, "fetched"),
        ({"code": 955, "redirects": "[]", "due_ms": None}, "fetched"),
        ({"code": 955, "due_ms": None}, "rejected"),
        ({"code": 951}, "rejected"),
        ({"code": 961, "due_ms": None}, "rejected"),
        ({"code": 951, "failed_runs": 1}, "fetch_failures"),
        ({"code": 404, "failed_runs": 1}, "fetch_failures"),
        ({"code": 903, "failed_runs": 2}, "fetch_failures"),
        # A status that a server sends, not a copy.
        ({"code": 909, "failed_runs": 1}, "fetch_failures"),
        ({"code": 966, "due_ms": None}, "fetch_failures"),
    ],
)
def test_settle_when_a_visit_ends_then_the_url_is_to_fetch_no_longer(
    database: Database, values: dict[str, object], name: str
) -> None:
    ids = add(database, ["a", "b"])
    claim(database)

    assert settle(database, ids[:1], **values) == {"to_fetch": -1, name: 1}


def test_settle_when_the_visit_is_tried_again_then_nothing_changes(database: Database) -> None:
    ids = add(database, ["a"])
    claim(database)

    assert settle(database, ids, code=503, fetch_state=FetchState.TODO, attempts=1, due_ms=LATER) == {}


def test_reopen_when_a_url_was_visited_in_the_run_then_it_is_one_url_in_one_class(database: Database) -> None:
    ids = add(database, ["a"])
    settle(database, ids)

    reopened = count(database, lambda transaction: url_table.reopen(transaction, ids))

    assert reopened == {"fetched": -1, "to_fetch": 1}
    assert settle(database, ids, code=404, failed_runs=1) == {"to_fetch": -1, "fetch_failures": 1}


def refuse(transaction: Transaction, ids: list[int]) -> None:
    refused = [Settled(url_id=url_id, code=955, due_ms=None, fetched_ms=None) for url_id in ids]
    url_table.settle(transaction, refused, REFUSED_LATER)


@pytest.mark.parametrize(
    ("due_ms", "work", "changes"),
    [
        (LATER, url_table.reopen, {"to_fetch": 1, "discovered": 1}),
        (LATER, refuse, {"rejected": 1, "discovered": 1}),
        (NOW_MS, orphan_table.park, {"to_fetch": -1, "discovered": -1}),
        (
            NOW_MS,
            lambda transaction, ids: review_table.put_off(transaction, SOURCE, after=0, horizon_ms=NOW_MS),
            {"to_fetch": -1, "discovered": -1},
        ),
        (
            NOW_MS,
            lambda transaction, ids: forget_table.empty(transaction, dict.fromkeys(ids, "forget: a")),
            {"to_fetch": -1, "discovered": -1},
        ),
    ],
    ids=["reopened", "refused by an edited rule", "parked as an orphan", "put off by a replay", "forgotten"],
)
def test_row_when_another_run_visited_it_then_what_is_done_to_it_takes_it_into_this_run_or_out(
    database: Database, due_ms: int, work: Callable[[Transaction, list[int]], object], changes: dict[str, int]
) -> None:
    ids = add(database, ["a"])
    settle(database, ids, run=RUN - 1, due_ms=due_ms)

    assert count(database, lambda transaction: work(transaction, ids)) == changes


def test_orphan_when_something_names_it_again_then_it_is_of_the_run_again(database: Database) -> None:
    ids = add(database, ["a"])
    settle(database, ids, run=RUN - 1, due_ms=NOW_MS)
    database.write(orphan_table.park, ids)

    named = count(database, lambda transaction: orphan_table.note_named(transaction, ids, due_ms=0))

    assert named == {"to_fetch": 1, "discovered": 1}


def test_claim_and_release_then_nothing_changes(database: Database) -> None:
    ids = add(database, ["a", "b"])
    settle(database, ids[1:], run=RUN - 1, due_ms=NOW_MS)

    def work(transaction: Transaction) -> None:
        claimed = url_table.claim(transaction, SOURCE, 1, limit=9, now_ms=NOW_MS, horizon_ms=NOW_MS, forced=False)
        assert len(claimed) == 2
        url_table.release(transaction, ids)

    assert count(database, work) == {}


def test_set_aside_when_a_run_begins_then_the_table_has_a_failure_of_it(database: Database) -> None:
    ids = add(database, ["a"])
    stops = '{"counts": {}, "last": null, "after_run": 0, "stops": 2}'
    with database.write_once() as transaction:
        state = int(FetchState.ALONE)
        transaction.execute(update(urls).where(urls.c.id.in_(ids)).values(fetch_state=state, failures=stops))
        found = url_queue.recover(transaction, SOURCE, stalled=True, run_id=RUN)
        there = url_classes.count(transaction, SOURCE, RUN, NOW_MS)

    assert len(found.set_aside) == 1
    assert there["fetch_failures"] == there["discovered"] == 1


def test_purge_when_a_row_was_visited_in_this_run_then_it_stays_counted(database: Database) -> None:
    ids = add(database, ["a", "b"])
    settle(database, ids[:1], code=404, failed_runs=1)
    over = Over(source_id=SOURCE, before_ms=NOW_MS + 9, remove_on=[404], kept_run=RUN)
    with database.write_once() as transaction:
        tally = url_classes.open_tally(transaction, RUN, NOW_MS)
        assert purge_urls(transaction, over, ids[:1]) == 1

    assert (dict(tally.changes), dict(tally.forgotten)) == ({}, {"fetch_failures": 1})


def test_watch_when_no_run_is_under_way_then_nothing_is_counted(database: Database) -> None:
    ids = add(database, ["a"])
    with database.write_once() as transaction, url_classes.watch(transaction, ids):
        assert url_classes.find_tally(transaction) is None
        assert url_classes.find_run(transaction) is None
