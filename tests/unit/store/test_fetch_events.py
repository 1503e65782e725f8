"""The walk over all (state, event) pairs of visits: what each event makes of a row in each state (``fetch_events.txt``).

``python -m tests.unit.store.test_fetch_events`` writes the file anew.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import delete, insert, select

from searchcrawl import store
from searchcrawl.codes import Code
from searchcrawl.rules.lifecycle import Failures
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.events import StateEvent
from searchcrawl.store.schema import urls
from searchcrawl.store.states import FetchState
from searchcrawl.store.urls import fetch_events, forget_table, url_queue, url_table
from searchcrawl.store.urls.url_table import Settled
from tests.unit.store.support_store import NOW_MS, SOURCE, open_store

FILE: Final = Path(__file__).with_name("fetch_events.txt")
Event = Callable[[Transaction, Sequence[int]], object]


def settled(state: FetchState, event: StateEvent = fetch_events.VISITED) -> Event:
    def settle(transaction: Transaction, ids: Sequence[int]) -> None:
        ends = [Settled(url_id=url_id, fetch_state=state, code=404, due_ms=None, fetched_ms=None) for url_id in ids]
        url_table.settle(transaction, ends, event)

    return settle


def recovered(*, stalled: bool, parsed: slice = slice(0)) -> Event:
    return lambda transaction, ids: url_queue.recover(transaction, SOURCE, stalled=stalled, parsed=ids[parsed])


#: The ways to call each event, under the name of the event.
EVENTS: Final[dict[str, Event]] = {
    "CLAIMED": lambda transaction, ids: url_table.claim_these(transaction, ids, now_ms=NOW_MS, forced=False),
    "CLAIMED_ALONE": lambda transaction, ids: [
        url_table.claim_alone(transaction, url_id, now_ms=NOW_MS, forced=False) for url_id in ids
    ],
    "RELEASED": url_table.release,
    "PUT_OFF": lambda transaction, ids: url_table.set_laps(transaction, dict.fromkeys(ids, 2)),
    "NOT_NOW": lambda transaction, ids: url_table.wait(transaction, dict.fromkeys(ids, NOW_MS)),
    "VISITED, for good": settled(FetchState.SETTLED),
    "VISITED, again": settled(FetchState.TODO),
    "REFUSED": settled(FetchState.SETTLED, fetch_events.REFUSED),
    "REFUSED_LATER": settled(FetchState.SETTLED, fetch_events.REFUSED_LATER),
    "INTERRUPTED": recovered(stalled=False),
    "INTERRUPTED, while it parsed": recovered(stalled=False, parsed=slice(None)),
    "SUSPECTED, of a process that stopped turning": recovered(stalled=True),
    "SUSPECTED, of a member": url_queue.suspect,
    "TRIED_AGAIN": lambda transaction, ids: url_queue.try_again(transaction, SOURCE),
    "REOPENED": url_table.reopen,
    "FORGOTTEN": lambda transaction, ids: forget_table.empty(transaction, dict.fromkeys(ids, "forget_urls: x")),
    "UNVISITED": lambda transaction, ids: forget_table.empty(transaction, dict.fromkeys(ids)),
}


class Walk:
    """A store with one row in each state, which each event meets as it was."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def meet(self, event: Event) -> list[FetchState]:
        """The states after an event."""
        ids = [int(state) + 1 for state in FetchState]
        row = {"source_id": SOURCE, "host_id": 1, "depth": 0, "first_seen_ms": NOW_MS, "code": int(Code.SET_ASIDE)}
        failures = Failures(stops=2).dump()
        with self._database.write_once() as transaction:
            transaction.execute(delete(urls))
            transaction.execute(
                insert(urls),
                [
                    {**row, "id": each, "key": each, "url": str(each), "fetch_state": each - 1, "failures": failures}
                    for each in ids
                ],
            )
            event(transaction, ids)
            return [
                FetchState(state)
                for state in transaction.execute(select(urls.c.fetch_state).order_by(urls.c.id)).scalars()
            ]

    def describe(self, name: str) -> list[str]:
        """The lines of an event."""
        after = self.meet(EVENTS[name])
        return [f"{name}: {before.name} -> {now.name}" for before, now in zip(FetchState, after, strict=True)]


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    with open_store(tmp_path_factory.mktemp("walk")) as database:
        yield Walk(database)


@pytest.mark.parametrize("name", EVENTS)
def test_event_when_it_meets_rows_in_each_state_then_they_come_where_the_table_says(walk: Walk, name: str) -> None:
    known = [line for line in FILE.read_text("utf-8").splitlines() if line.startswith(f"{name}: ")]

    assert walk.describe(name) == known


def test_events_when_listed_then_each_is_walked_but_those_that_others_show() -> None:
    walked = {name.partition(",")[0] for name in EVENTS}

    # New rows have no state before; a row is set aside in the midst of another event.
    assert walked | {"FOUND", "SET_ASIDE"} == fetch_events.EVENTS.keys()


@pytest.mark.parametrize("refused", [True, False])
def test_row_when_new_then_it_is_to_do_or_refused(refused: bool) -> None:
    assert fetch_events.choose_found(is_refused=refused) == (FetchState.SETTLED if refused else FetchState.TODO)


def test_state_of_a_visit_when_written_then_by_an_event() -> None:
    package = Path(store.__file__).parent

    found = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in sorted({*package.rglob("*.py")} - {package / "urls" / "fetch_events.py"})
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.keyword) and node.arg == "fetch_state")
        or (
            isinstance(node, ast.Dict)
            and any(
                isinstance(key, ast.Constant) and key.value == "fetch_state" and "FetchState" in ast.dump(value)
                for key, value in zip(node.keys, node.values, strict=True)
            )
        )
    ]

    assert found == [], "fetch_events.py says how states change"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder)) as store_of_walk:
        walked = Walk(store_of_walk)
        lines = [line for name in EVENTS for line in walked.describe(name)]
        FILE.write_text("\n".join([*lines, ""]), "utf-8")
