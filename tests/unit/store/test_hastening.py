"""Rows that become due before their time: after an edit of the source file, and where a clock was ahead (D9, X-S7)."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import update

from searchcrawl.exceptions import LeaseLost
from searchcrawl.store import source_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.runs import lease as leases
from searchcrawl.store.runs import run_table
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.schema import urls
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import review_table
from searchcrawl.store.urls.review_table import Hastening
from tests.unit.store.support_store import NOW_MS, SOURCE, add, row, settle

LATER_MS = NOW_MS + 5_000_000
#: The edit came within this run, or after it, and at this time; the horizon of the next run is after it.
EDITED_RUN, EDITED_MS = 7, NOW_MS - 1000


def settle_in(database: Database, url_id: int, *, run: int, fetched_ms: int | None) -> None:
    settle(database, [url_id], due_ms=LATER_MS, fetched_ms=fetched_ms)
    with database.write_once() as transaction:
        transaction.execute(update(urls).where(urls.c.id == url_id).values(run_id=run))


def hasten(database: Database, *, after: int, last: int) -> None:
    hastening = Hastening(after=after, run_id=EDITED_RUN, since_ms=EDITED_MS)
    database.write(review_table.hasten, SOURCE, hastening, last=last, horizon_ms=NOW_MS, now_ms=NOW_MS + 1000)


def find_hastened(database: Database, ids: list[int]) -> list[int]:
    return [url_id for url_id in ids if row(database, url_id).due_ms == NOW_MS]


def test_hasten_when_rows_are_due_later_then_they_are_due_at_the_horizon_and_no_other(database: Database) -> None:
    names = ["early", "a", "b", "above", "refused", "todo", "claimed"]
    early, first, last, above, refused, todo, claimed = ids = add(database, names)
    settle(database, [early], due_ms=NOW_MS - 5)
    settle(database, [first, last, above], due_ms=LATER_MS)
    settle(database, [refused], code=955, due_ms=None)
    settle(database, [todo], fetch_state=FetchState.TODO, code=503, due_ms=NOW_MS + 1000)
    settle(database, [claimed], fetch_state=FetchState.FETCHING, due_ms=NOW_MS + 1000)

    hasten(database, after=0, last=last)
    below = find_hastened(database, ids)
    hasten(database, after=above, last=claimed)

    assert below == [first, last]
    assert find_hastened(database, ids) == below


@pytest.mark.parametrize("fetched_ms", [1, EDITED_MS - 1, NOW_MS + 864_000_000])
@pytest.mark.parametrize("run", [EDITED_RUN - 1, EDITED_RUN])
def test_hasten_when_a_row_was_visited_before_the_edit_then_it_is_due_whatever_the_clock_said(
    database: Database, run: int, fetched_ms: int
) -> None:
    (url_id,) = add(database, ["a"])
    settle_in(database, url_id, run=run, fetched_ms=fetched_ms)

    hasten(database, after=0, last=url_id)

    assert find_hastened(database, [url_id]) == [url_id]


@pytest.mark.parametrize(
    ("run", "fetched_ms"),
    [(EDITED_RUN, NOW_MS), *((EDITED_RUN + 1, each) for each in (None, 1, NOW_MS, NOW_MS + 864_000_000))],
)
def test_hasten_when_a_row_was_visited_since_the_edit_then_it_is_not_due_whatever_the_clock_says_of_later_runs(
    database: Database, run: int, fetched_ms: int | None
) -> None:
    (url_id,) = add(database, ["a"])
    settle_in(database, url_id, run=run, fetched_ms=fetched_ms)

    hasten(database, after=0, last=url_id)

    assert find_hastened(database, [url_id]) == []


@pytest.fixture
def lease(database: Database) -> Lease:
    return database.write(lambda transaction: leases.take(transaction, SOURCE, name="demo"))


def test_hasten_ahead_when_rows_were_visited_by_a_clock_that_was_ahead_then_they_are_due_now_page_by_page(
    database: Database, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_table, "PAGE_ROWS", 2)
    early, *late = add(database, ["early", "a", "b", "c", "d", "e"])
    settle(database, [early], due_ms=NOW_MS - 5)
    settle(database, late, due_ms=LATER_MS)
    settle(database, late[:3], due_ms=LATER_MS, fetched_ms=NOW_MS + 4_000_000)

    ends, after = list[int | None](), 0
    while after is not None:
        after = database.write(
            partial(review_table.hasten_ahead, lease=lease, after=after, horizon_ms=NOW_MS, now_ms=NOW_MS)
        )
        ends.append(after)

    assert find_hastened(database, late) == late[:3]
    assert ends == [late[1], late[2], None]


def test_edit_when_noted_then_it_is_found_until_all_rows_are_due(database: Database, lease: Lease) -> None:
    begun = partial(review_table.begin_hastening, lease=lease, run_id=EDITED_RUN, now_ms=EDITED_MS)
    find = partial(review_table.find_hastening, source=SOURCE)

    database.write(begun)
    noted = database.read(find)
    database.write(partial(source_table.note, source_id=SOURCE, hasten_after=5))
    half = database.read(find)
    database.write(partial(source_table.note, source_id=SOURCE, hasten_after=None))

    assert noted == Hastening(0, EDITED_RUN, EDITED_MS)
    assert half == Hastening(5, EDITED_RUN, EDITED_MS)
    assert database.read(find) is None


def test_edit_when_the_lease_is_lost_then_it_is_not_noted(tmp_path: Path) -> None:
    with closing(Database("sqlite:///lost.db", tmp_path)) as database:
        source = database.write(lambda transaction: run_table.find_or_add_source(transaction, "demo"))
        old = database.write(lambda transaction: leases.take(transaction, source, name="demo"))
        database.write(lambda transaction: leases.release(transaction, old))
        database.write(lambda transaction: leases.take(transaction, source, name="demo"))

        with pytest.raises(LeaseLost):
            database.write(partial(review_table.begin_hastening, lease=old, run_id=1, now_ms=1))

        assert database.read(partial(review_table.find_hastening, source=source)) is None


def hasten_late(database: Database, longest_ms: int) -> None:
    lease = database.write(leases.take, SOURCE, name="x")
    review_table.hasten_late(database, lease, longest_ms=longest_ms, now_ms=NOW_MS)


@pytest.mark.parametrize(("longest_ms", "due_ms"), [(0, NOW_MS - 700), (1000, NOW_MS + 300)])
def test_hasten_late_when_pages_wait_longer_than_any_may_then_they_are_due_as_if_it_had_always_been_so(
    database: Database, longest_ms: int, due_ms: int
) -> None:
    late, ahead, failing, soon, refused = ids = add(database, ["late", "ahead", "failing", "soon", "refused"])
    settle(database, [late, failing], due_ms=LATER_MS, fetched_ms=NOW_MS - 700)
    settle(database, [ahead], due_ms=LATER_MS, fetched_ms=NOW_MS + 864_000_000)
    settle(database, [soon], due_ms=NOW_MS, fetched_ms=NOW_MS - 700)
    settle(database, [refused], code=955, due_ms=None)
    with database.write_once() as transaction:
        transaction.execute(update(urls).where(urls.c.id == failing).values(failed_runs=3))

    hasten_late(database, longest_ms)

    assert [row(database, url_id).due_ms for url_id in ids] == [due_ms, longest_ms, LATER_MS, NOW_MS, None]


def test_hasten_late_when_there_are_more_than_a_page_then_all_are_due(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_table, "PAGE_ROWS", 2)
    ids = add(database, ["a", "b", "c", "d", "e"])
    settle(database, ids[:3], due_ms=LATER_MS, fetched_ms=NOW_MS - 700)
    settle(database, ids[3:], due_ms=LATER_MS + 1, fetched_ms=NOW_MS - 700)

    hasten_late(database, 0)

    assert {row(database, url_id).due_ms for url_id in ids} == {NOW_MS - 700}
