"""The walks over all (state, event) pairs: what each event of a document, or of a visit, makes of it in each state.

``document_events.txt`` has the results for documents: for each event and state, into which states how many of the rows come.
Each row has other circumstances, so nearly any change of an event changes a number. ``fetch_events.txt`` has those for rows of
URLs. The files are the place to read what a change of an event does; ``python -m tests.unit.store.test_state_events`` writes
them anew.
"""

from __future__ import annotations

import ast
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import delete, insert, select

from searchcrawl import store
from searchcrawl.codes import Code
from searchcrawl.rules.lifecycle import ORPHAN, Failures
from searchcrawl.store import batch_table, log_table, removal_table
from searchcrawl.store.batch_table import SealedBatch
from searchcrawl.store.documents import comparison_table, document_table, duplicate_key_table, former_table
from searchcrawl.store.documents.comparison_table import Indexed
from searchcrawl.store.documents.document_table import Confirmed, DocumentUpdate
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.events import StateEvent
from searchcrawl.store.run_schema import batches
from searchcrawl.store.schema import documents, former_documents, urls
from searchcrawl.store.states import BatchState, DocumentState, FetchState, Leaving
from searchcrawl.store.urls import fetch_events, forget_table, orphan_table, url_queue, url_table
from searchcrawl.store.urls.url_table import Settled
from tests.unit.store.support_store import NOW_MS, SOURCE, open_store

Event = Callable[[Transaction, Sequence[int]], object]
BATCH, OTHER_BATCH = 7, 8


def circumstances() -> Iterator[dict[str, Any]]:
    """One document of each kind, without its id: each state with all that its events look at."""
    for state in DocumentState:
        held = (0, 1, 3, 6) if state == DocumentState.QUARANTINED else (None,)
        values = product(
            (None, 1), (None, 999_999), (None, 0, 5), (200, 909), held, (None, 2), (None, ORPHAN, "909"), (BATCH,)
        )
        for segment, duplicate_of, version, code, held_state, rejected_run, evidence, batch_id in values:
            place = dict.fromkeys(("record_offset", "response_bytes", "fields_bytes"), segment)
            yield {
                **place,
                "source_id": SOURCE,
                "state": int(state),
                "segment": segment,
                "duplicate_of": duplicate_of,
                "indexed_version": version,
                "code": code,
                "held_state": held_state,
                "rejected_run": rejected_run,
                "evidence": evidence,
                "batch_id": batch_id,
                "leaving": int(Leaving.ORPHAN if evidence == ORPHAN else Leaving.NO),
                "fields_digest": b"f",
                "body_digest": b"b",
            }


def confirmed(*, send_again: bool) -> Event:
    return lambda transaction, ids: document_table.confirm(
        transaction, [Confirmed(url_id=url_id, send_again=send_again) for url_id in ids]
    )


def changed(state: DocumentState) -> Event:
    place = dict.fromkeys(
        ("segment", "record_offset", "response_bytes", "fields_bytes"), 2 if state == DocumentState.CACHED else None
    )
    return lambda transaction, ids: document_table.store(
        transaction,
        SOURCE,
        [
            DocumentUpdate(
                url_id=url_id,
                state=state,
                code=200 if state == DocumentState.CACHED else 952,
                body_digest=b"B",
                fields_digest=b"F",
                mimetype="text/html",
                content_length=1,
                etag=None,
                last_modified=None,
                last_changed_ms=NOW_MS,
                **place,
            )
            for url_id in ids
        ],
    )


def resolved(code: int, duplicate_of: int | None, state: DocumentState | None) -> Event:
    return lambda transaction, ids: duplicate_key_table.set_results(
        transaction, [(url_id, code, duplicate_of, state) for url_id in ids]
    )


def put_back(state: DocumentState, version: int | None, *, readable: bool) -> Event:
    def restore(transaction: Transaction, ids: Sequence[int]) -> None:
        rows = [
            {"url_id": url_id, "source_id": SOURCE, "run_id": 1, "sketch": b"", "state": int(state)} for url_id in ids
        ]
        transaction.execute(insert(former_documents), [{**row, "indexed_version": version} for row in rows])
        former_table.restore(transaction, ids, readable=ids if readable else ())
        transaction.execute(delete(former_documents))

    return restore


SEALED = SealedBatch(BATCH, 6, BatchState.SEALED)
OF_DOCUMENTS: Final[dict[str, Event]] = {
    "changed, to be indexed": changed(DocumentState.CACHED),
    "changed, not to be indexed": changed(DocumentState.NONE),
    "confirmed": confirmed(send_again=False),
    "confirmed, with another value": confirmed(send_again=True),
    "evidence": lambda transaction, ids: document_table.mark_evidence(transaction, ids, "404"),
    "evidence, as before a rejection": lambda transaction, ids: document_table.mark_evidence(transaction, ids, "909"),
    "nothing names it": lambda transaction, ids: document_table.mark_evidence(transaction, ids, ORPHAN, Leaving.ORPHAN),
    "something names it again": lambda transaction, ids: orphan_table.note_named(transaction, ids, due_ms=NOW_MS),
    "value changed": document_table.send_again,
    "copy of another": resolved(909, 999_998, DocumentState.WITHHELD),
    "other canonical page": resolved(964, 999_998, DocumentState.WITHHELD),
    "copy of another, as before": resolved(909, 999_998, None),
    "stands again, recorded": resolved(200, None, DocumentState.CACHED),
    "stands again": resolved(200, None, DocumentState.RECORD_LOST),
    "put back, was there": put_back(DocumentState.PRESENT, 5, readable=True),
    "put back, was not there": put_back(DocumentState.CACHED, None, readable=True),
    "put back, record gone": put_back(DocumentState.PRESENT, 4, readable=False),
    "put into a delivery": lambda transaction, ids: batch_table.seal_documents(transaction, SOURCE, 1, NOW_MS),
    "acknowledged": lambda transaction, ids: batch_table.note_accepted(transaction, SEALED, ids),
    "acknowledged, of another delivery": lambda transaction, ids: batch_table.note_accepted(
        transaction, SEALED._replace(number=OTHER_BATCH), ids
    ),
    "refused by the index": lambda transaction, ids: batch_table.note_refused(
        transaction, SEALED, [(url_id, "too long") for url_id in ids]
    ),
    "record gone": batch_table.mark_records_lost,
    "removal put into a delivery": lambda transaction, ids: removal_table.seal(
        transaction, SOURCE, 1, NOW_MS, ids, counted=True
    ),
    "removal acknowledged": removal_table.note_removed,
    "left behind in receivers": lambda transaction, ids: log_table.let_go(transaction, SOURCE, ids),
    "removal held back": lambda transaction, ids: removal_table.quarantine(transaction, ids, 1),
    "removal rejected": removal_table.reject,
    "rejected removal let go, not there": removal_table.drop_unsent,
    "removal taken back": removal_table.take_back,
    "refused one sent again": lambda transaction, ids: batch_table.prepare_resend(transaction, SOURCE, after=0),
    "sent again": lambda transaction, ids: (
        batch_table.begin_resend(transaction, SOURCE, NOW_MS),
        batch_table.seal_resend(transaction, SOURCE, 1, NOW_MS, after=0, max_bytes=1 << 40),
    ),
    "sent again, chosen": lambda transaction, ids: batch_table.seal_chosen(transaction, SOURCE, 1, NOW_MS, url_ids=ids),
    "found in another version": lambda transaction, ids: comparison_table.take_over(
        transaction, SOURCE, {url_id: Indexed(9, None) for url_id in ids}
    ),
    "not found": lambda transaction, ids: comparison_table.note_missing(transaction, ids, with_records=True),
    "not found, record gone": lambda transaction, ids: comparison_table.note_missing(
        transaction, ids, with_records=False
    ),
    "removal of a copy decided again": lambda transaction, ids: removal_table.open_early(transaction, SOURCE),
    "removal decided again": lambda transaction, ids: comparison_table.open_removals(transaction, SOURCE),
    "forgotten": lambda transaction, ids: forget_table.empty(transaction, dict.fromkeys(ids, "forget_urls: x")),
}


class DocumentWalk:
    """A store with one document of each kind, which each event meets as it was."""

    FILE: Final = Path(__file__).with_name("document_events.txt")
    EVENTS: Final = OF_DOCUMENTS

    def __init__(self, database: Database) -> None:
        self._database = database
        rows = [{**values, "url_id": number} for number, values in enumerate(circumstances(), 1)]
        self._rows = [
            {**row, "index_error": "x"} if row["state"] == DocumentState.WITHHELD and not row["duplicate_of"] else row
            for row in rows
        ]
        self.ids = [row["url_id"] for row in self._rows]
        url = {"source_id": SOURCE, "host_id": 1, "depth": 0, "fetch_state": int(FetchState.SETTLED), "code": 200}
        with database.write_once() as transaction:
            transaction.execute(
                insert(urls),
                [{**url, "id": each, "key": each, "url": str(each), "first_seen_ms": NOW_MS} for each in self.ids],
            )

    def meet(self, event: Event) -> list[Any]:
        """The rows after an event, by rising id."""
        with self._database.write_once() as transaction:
            transaction.execute(delete(documents))
            transaction.execute(delete(batches))
            for number in (BATCH, OTHER_BATCH):
                values = {"run_id": 1, "crawl_version": number, "state": 0, "created_ms": 0}
                transaction.execute(insert(batches).values(id=number, source_id=SOURCE, **values))
            for row in ({"index_error": None}, {"index_error": "x"}):
                part = [
                    {**row, **each} for each in self._rows if ("index_error" in each) == (row["index_error"] == "x")
                ]
                transaction.execute(insert(documents), part)
            event(transaction, self.ids)
            return list(transaction.execute(select(documents).order_by(documents.c.url_id)))

    def describe(self, name: str) -> list[str]:
        """The lines of an event."""
        found: dict[int, Counter[int]] = {}
        for before, after in zip(self._rows, self.meet(self.EVENTS[name]), strict=True):
            found.setdefault(before["state"], Counter())[after.state] += 1
        return [
            f"{name}: {DocumentState(before).name} -> "
            + ", ".join(f"{DocumentState(after).name} {number}" for after, number in sorted(counts.items()))
            for before, counts in found.items()
        ]


def settled(state: FetchState, event: StateEvent = fetch_events.VISITED) -> Event:
    def settle(transaction: Transaction, ids: Sequence[int]) -> None:
        ends = [Settled(url_id=url_id, fetch_state=state, code=404, due_ms=None, fetched_ms=None) for url_id in ids]
        url_table.settle(transaction, ends, event)

    return settle


def recovered(*, stalled: bool, parsed: slice = slice(0)) -> Event:
    return lambda transaction, ids: url_queue.recover(transaction, SOURCE, stalled=stalled, parsed=ids[parsed])


#: The ways to call each event, under the name of the event.
OF_VISITS: Final[dict[str, Event]] = {
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


class VisitWalk:
    """A store with one row in each state, which each event meets as it was."""

    FILE: Final = Path(__file__).with_name("fetch_events.txt")
    EVENTS: Final = OF_VISITS

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
        after = self.meet(self.EVENTS[name])
        return [f"{name}: {before.name} -> {now.name}" for before, now in zip(FetchState, after, strict=True)]


WALKS: Final = (DocumentWalk, VisitWalk)
Walks = dict[type, DocumentWalk | VisitWalk]


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walks]:
    folder = tmp_path_factory.mktemp("walks")
    with open_store(folder) as one, open_store(folder, "sqlite:///visits.db") as other:
        yield {DocumentWalk: DocumentWalk(one), VisitWalk: VisitWalk(other)}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in WALKS for name in kind.EVENTS])
def test_event_when_it_meets_rows_in_each_state_then_they_come_where_the_table_says(
    walks: Walks, kind: type[DocumentWalk | VisitWalk], name: str
) -> None:
    known = [line for line in kind.FILE.read_text("utf-8").splitlines() if line.startswith(f"{name}: ")]

    assert walks[kind].describe(name) == known


def test_events_when_listed_then_each_is_walked_but_those_that_others_show() -> None:
    walked = {name.partition(",")[0] for name in OF_VISITS}

    # New rows have no state before; a row is set aside in the midst of another event.
    assert walked | {"FOUND", "SET_ASIDE"} == fetch_events.EVENTS.keys()


@pytest.mark.parametrize("refused", [True, False])
def test_row_when_new_then_it_is_to_do_or_refused(refused: bool) -> None:
    assert fetch_events.choose_found(is_refused=refused) == (FetchState.SETTLED if refused else FetchState.TODO)


@pytest.mark.parametrize(
    ("column", "kind", "others"),
    [
        # The kept versions of ``former_documents`` have states too, and no transitions.
        ("state", "DocumentState", ("documents/document_events.py", "documents/former_table.py")),
        ("fetch_state", "FetchState", ("urls/fetch_events.py",)),
    ],
)
def test_state_when_written_then_by_an_event(column: str, kind: str, others: Sequence[str]) -> None:
    package = Path(store.__file__).parent

    found = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in sorted({*package.rglob("*.py")} - {package / name for name in others})
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.keyword | ast.Dict) and writes(node, column, kind)
    ]

    assert found == [], f"{others[0]} says how states change"


def writes(node: ast.keyword | ast.Dict, column: str, kind: str) -> bool:
    """Whether a state is given under the name of the column; to ``fetch_state`` nothing is."""
    if isinstance(node, ast.keyword):
        return node.arg == column and (column == "fetch_state" or kind in ast.dump(node.value))
    return any(
        isinstance(key, ast.Constant) and key.value == column and kind in ast.dump(value)
        for key, value in zip(node.keys, node.values, strict=True)
    )


if __name__ == "__main__":
    for each in WALKS:
        with tempfile.TemporaryDirectory() as folder, open_store(Path(folder)) as store_of_walk:
            walked = each(store_of_walk)
            lines = [line for name in each.EVENTS for line in walked.describe(name)]
            each.FILE.write_text("\n".join([*lines, ""]), "utf-8")
