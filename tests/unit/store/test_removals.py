"""What counts towards the limits on deleting, and which copies leave without them (L3, F2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from searchcrawl.codes import Code
from searchcrawl.store import batch_table, removal_table
from searchcrawl.store.documents import document_table, duplicate_key_table
from searchcrawl.store.engine.database import Database
from searchcrawl.store.removal_table import Before
from searchcrawl.store.runs import run_table
from searchcrawl.store.runs.run_table import RunRow
from searchcrawl.store.states import DocumentState, EndReason
from tests.unit.store.support_store import NOW_MS, SOURCE, add, document, present, states, store

DAY_MS: Final = 86_400_000
WITHHELD: Final = DocumentState.WITHHELD


def remove(database: Database, ids: Sequence[int], *, run_id: int, now_ms: int, counted: bool = True) -> None:
    database.write(removal_table.seal, SOURCE, run_id, now_ms, ids, counted=counted)
    database.write(removal_table.note_removed, ids)


def count(database: Database, now_ms: int) -> int:
    return database.read(removal_table.count_recent, SOURCE, since_ms=now_ms - DAY_MS)


def begin(database: Database, now_ms: int, *, fingerprint: str = "") -> RunRow:
    return database.write(run_table.start, SOURCE, fingerprint=fingerprint, now_ms=now_ms)


def end(database: Database, run: RunRow, now_ms: int, reason: str = EndReason.FINISHED) -> None:
    database.write(run_table.end, run.id, now_ms=now_ms, reason=reason, exit_code=0)


def copied(database: Database, copy: int, of: int, code: int = Code.DUPLICATE) -> None:
    database.write(duplicate_key_table.set_results, [(copy, code, of, WITHHELD)])


def leaving(database: Database, batch_before: int) -> tuple[list[int], list[int]]:
    """The documents that leave within the limits, and the copies that leave without them."""
    within = database.read(removal_table.find_candidates, SOURCE, before=Before(batch_before, 0))
    without = database.read(removal_table.find_new_copies, SOURCE, before=Before(batch_before, 0))
    return [row.url_id for row in within], [row.url_id for row in without]


def test_count_when_runs_end_early_then_removals_count_back_to_the_last_completed_one(database: Database) -> None:
    ids = present(database, *"abcdef")
    for number, reason in enumerate([EndReason.FINISHED, EndReason.LIMIT, EndReason.STOPPED]):
        run = begin(database, NOW_MS + number)
        remove(database, ids[2 * number : 2 * number + 2], run_id=run.id, now_ms=NOW_MS + number)
        end(database, run, NOW_MS + number, reason)

    assert count(database, NOW_MS + 10 * DAY_MS) == 4
    end(database, begin(database, NOW_MS + 9), NOW_MS + 9)
    assert count(database, NOW_MS + 10 * DAY_MS) == 0


def test_count_when_runs_are_completed_then_those_of_a_day_count(database: Database) -> None:
    ids = present(database, *"abc")
    for number, url_id in enumerate(ids):
        run = begin(database, NOW_MS + number * DAY_MS)
        remove(database, [url_id], run_id=run.id, now_ms=NOW_MS + number * DAY_MS)
        end(database, run, NOW_MS + number * DAY_MS)

    assert [count(database, NOW_MS + days * DAY_MS) for days in (2, 3, 4)] == [2, 1, 0]


def test_count_when_removals_were_approved_then_they_do_not_count(database: Database) -> None:
    ids = present(database, *"abc")
    run = begin(database, NOW_MS)
    remove(database, ids[:1], run_id=run.id, now_ms=NOW_MS)
    remove(database, ids[1:], run_id=run.id, now_ms=NOW_MS, counted=False)

    assert count(database, NOW_MS) == 1


def test_count_when_removals_are_sent_later_by_another_process_then_they_count_from_then_on(
    database: Database,
) -> None:
    ids = present(database, *"ab")
    run = begin(database, NOW_MS)
    batch = database.write(removal_table.seal, SOURCE, run.id, NOW_MS, ids, counted=True)
    end(database, run, NOW_MS)
    later = NOW_MS + 5 * DAY_MS

    before = count(database, later)
    database.write(removal_table.take_over, batch, run.id, later)

    assert (before, count(database, later)) == (0, 2)


def test_count_when_another_source_removes_then_it_does_not_count(database: Database) -> None:
    other = database.write(run_table.find_or_add_source, "other")
    database.write(removal_table.seal, other, 1, NOW_MS, [1, 2], counted=True)

    assert count(database, NOW_MS) == 0


@pytest.mark.parametrize("code", [Code.DUPLICATE, Code.NOT_CANONICAL, Code.DISPLAY_URL_CLASH])
def test_copies_when_the_index_had_them_before_the_run_then_they_leave_within_the_limits(
    database: Database, code: int
) -> None:
    survivor, old = present(database, "a", "b")
    end(database, begin(database, NOW_MS), NOW_MS)
    run = begin(database, NOW_MS + 1)
    (new,) = present(database, "c")
    for copy in (old, new):
        copied(database, copy, survivor, code)

    assert leaving(database, run.batch_before) == ([old], [new])


def test_copies_when_a_receipt_was_lost_then_they_are_new_ones(database: Database) -> None:
    (survivor,) = present(database, "a")
    copy = add(database, ["b"])
    store(database, copy)
    run = begin(database, NOW_MS)
    assert database.write(batch_table.seal_documents, SOURCE, run.id, NOW_MS) is not None
    copied(database, copy[0], survivor)

    assert document(database, copy[0]).indexed_version == 0
    assert leaving(database, run.batch_before) == ([], copy)


def test_copies_when_they_were_away_in_between_then_they_are_new_ones(database: Database) -> None:
    survivor, copy = present(database, "a", "b")
    remove(database, [copy], run_id=1, now_ms=NOW_MS)
    run = begin(database, NOW_MS)
    store(database, [copy])
    batch = database.write(batch_table.seal_documents, SOURCE, run.id, NOW_MS)
    assert batch is not None
    database.write(batch_table.note_accepted, batch, [copy])
    copied(database, copy, survivor)

    assert leaving(database, run.batch_before) == ([], [copy])


def test_copies_when_the_other_page_stands_for_a_copy_itself_then_its_survivor_counts(database: Database) -> None:
    survivor, shown, hidden = present(database, "a", "b", "c")
    copied(database, shown, survivor)
    copied(database, hidden, shown, Code.DISPLAY_URL_CLASH)

    assert leaving(database, 9) == ([shown, hidden], [])
    store(database, [survivor], body=b"newer")
    assert leaving(database, 9) == ([], [])


def test_copies_when_their_removal_waits_then_they_are_good_and_can_be_documents_again(database: Database) -> None:
    survivor, copy = present(database, "a", "b")
    copied(database, copy, survivor)
    database.write(removal_table.quarantine, [copy], 7)
    waits = database.write(duplicate_key_table.load, [copy])[copy]
    database.write(duplicate_key_table.set_results, [(copy, 200, None, DocumentState.CACHED)])

    assert waits.is_good
    assert states(database, [copy]) == [DocumentState.CACHED]
    assert document(database, copy).quarantine_run is None


def test_copies_when_rejected_then_they_stay_until_something_changes(database: Database) -> None:
    survivor, copy = present(database, "a", "b")
    copied(database, copy, survivor)
    database.write(removal_table.quarantine, [copy], 7)
    database.write(removal_table.reject, [copy])

    assert states(database, [copy]) == [WITHHELD]
    assert leaving(database, 9) == ([], [])
    database.write(document_table.mark_evidence, [copy], "404")
    assert leaving(database, 9) == ([copy], [])


def test_candidates_when_they_are_many_then_taken_in_pages_by_rising_id(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal_table, "PAGE_ROWS", 3)
    ids = present(database, *"abcdefghij")
    for copy in ids[1::2]:
        copied(database, copy, ids[0])
    database.write(document_table.mark_evidence, ids[2::2], "404")

    pages, after = [], 0
    with database.read_once() as transaction:
        while page := removal_table.find_candidates(transaction, SOURCE, before=Before(9, 0), after=after):
            after = page[-1].url_id
            pages.append([(row.url_id, row.leaving) for row in page])

    assert [len(page) for page in pages] == [3, 3, 3]
    assert [url_id for page in pages for url_id, _ in page] == ids[1:]
    assert [leaving for page in pages for _, leaving in page] == [0, 1, 0, 1, 0, 1, 0, 1, 0]


def test_run_when_it_continues_another_then_documents_are_from_before_as_in_that_one(database: Database) -> None:
    first = begin(database, NOW_MS)
    present(database, "a")
    end(database, first, NOW_MS, EndReason.LIMIT)
    continued = begin(database, NOW_MS + 1)
    present(database, "b")
    killed = begin(database, NOW_MS + 2)
    edited = begin(database, NOW_MS + 3, fingerprint="edited")
    end(database, edited, NOW_MS + 3, EndReason.LIMIT)
    present(database, "c")
    edited_again = begin(database, NOW_MS + 4, fingerprint="other")
    end(database, edited_again, NOW_MS + 4)
    present(database, "d")

    runs = (first, continued, killed, edited, edited_again, begin(database, NOW_MS + 5, fingerprint="other"))
    assert [run.batch_before for run in runs] == [0, 0, 0, 2, 3, 4]
