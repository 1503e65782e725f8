"""Takes pages back that were taken for content before their host was known to answer any path with such a page (L9, 965).

A document that was new leaves, one that was known is put back as it was, and the row is visited again in the same run: then
the page is judged by what the host answers. The writer thread calls it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from searchcrawl.codes import COPIES, WITH_DOCUMENT, Code
from searchcrawl.commit import document_rows
from searchcrawl.commit.decide import count_failure
from searchcrawl.items import Withdrawn
from searchcrawl.rules.lifecycle import WITHDRAWN, WITHDRAWN_RULE
from searchcrawl.run import Run
from searchcrawl.store.documents import document_table, duplicate_key_table, former_table
from searchcrawl.store.documents.former_table import Restored
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.urls import url_table

_ERROR: Final = "taken back: the host was found to answer any path with such a page"


class Withdrawals:
    """The rows of a run whose pages are to be taken back; those whose visits have not ended yet wait for that."""

    def __init__(self, run: Run) -> None:
        self._run = run
        #: by row: whether it had a document before this run
        self._waiting: dict[int, bool] = {}
        self._done: set[int] = set()

    def add(self, items: Iterable[Withdrawn]) -> None:
        """Adds what is to be taken back."""
        for item in items:
            self._waiting |= dict.fromkeys(item.new, False) | dict.fromkeys(item.known, True)

    @property
    def known(self) -> Sequence[int]:
        """Rows whose earlier documents are wanted."""
        return [url_id for url_id, is_known in self._waiting.items() if is_known]

    def write(self, transaction: Transaction, readable: Collection[int]) -> Mapping[str, int]:
        """Takes pages back whose visits have ended; returns what that adds to the counters.

        ``readable`` are known rows whose earlier record the cache still has.
        """
        self._done = set()
        if not self._waiting:
            return {}
        ended = url_table.find_results(transaction, list(self._waiting))
        self._done = set(ended)
        # Where the visit failed, nothing was taken.
        taken = sorted(url_id for url_id, result in ended.items() if result.code in WITH_DOCUMENT)
        new = [url_id for url_id in taken if not self._waiting[url_id]]
        before = duplicate_key_table.load(transaction, taken)
        # Those are deleted at the end of the run.
        sent = set(document_table.find_sent(transaction, new))
        document_table.mark_evidence(transaction, new, WITHDRAWN)
        back = [url_id for url_id in taken if self._waiting[url_id]]
        restored = former_table.restore(transaction, back, readable=readable)
        document_rows.resolve_again(transaction, self._run.source_id, before)
        document_table.process_again(transaction, [*new, *(row.url_id for row in restored)])
        self._visit_again(transaction, new, restored)
        copies = sum(ended[url_id].code in COPIES for url_id in new)
        mine = [row for row in restored if row.run_id == self._run.id]
        return {
            "new": -sum(ended[url_id].code not in COPIES and url_id not in sent for url_id in new),
            "changed": -len(mine),
            "duplicates": -copies - sum(row.was_copy for row in mine),
        }

    def note_commit(self) -> None:
        """What was written is durable."""
        for url_id in self._done:
            del self._waiting[url_id]
        self._done = set()

    def _visit_again(self, transaction: Transaction, new: Sequence[int], restored: Sequence[Restored]) -> None:
        """Has rows visited once more; they have the code 965 until their visits tell more."""
        run = self._run
        known = {row.url_id: (row.failed_runs, row.failures) for row in restored}
        rows = {
            url_id: count_failure(
                Code.SENTINEL, run.source, failed_runs=failed_runs, failures=failures, after_run=run.row.after_run
            )
            for url_id, (failed_runs, failures) in (dict.fromkeys(new, (0, None)) | known).items()
        }
        former_table.note_failed(transaction, rows, code=Code.SENTINEL, rule=WITHDRAWN_RULE, error=_ERROR)
        url_table.reopen(transaction, sorted(rows))
