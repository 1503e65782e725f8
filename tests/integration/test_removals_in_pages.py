"""Removals of any size are taken in pages; a process that is killed between two of them changes no decision (L3, D8)."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from searchcrawl import clock, failpoints
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.delivery import removals
from searchcrawl.delivery.batch_sender import BatchSender
from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.operations import quarantine
from searchcrawl.store import removal_table
from searchcrawl.store.documents import document_table
from tests.filled_store import FilledStore

PATHS: Final = tuple(f"/{number:02}" for number in range(40))
PAGE: Final = 4


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal_table, "PAGE_ROWS", PAGE)


class Store(FilledStore):
    """A filled store whose limits are the ordinary ones, or none."""

    def delete(self, number: int) -> None:
        """Fetches and sends all documents; then the first of them are gone."""
        self.fetch(*PATHS)
        self.send()
        gone = PATHS[:number]
        for path in gone:
            self.settle(path, 404)
        self.database.write(document_table.mark_evidence, [self.ids[path] for path in gone], "404")

    def remove(self, *, unlimited: bool = False) -> None:
        """What the end of a run does, after a dead process or not."""
        if unlimited:
            allowed = {"max_delete_percent": 100.0, "max_delete_documents": 1000}
            lifecycle = self.source.lifecycle.model_copy(update=allowed)
            self.run.source = self.source.model_copy(update={"lifecycle": lifecycle})
        cache = DocumentCache(SegmentFolder(self.project.cache_dir / "demo"), self.project.cache_dir)
        sender = BatchSender(self.run, self.index, cache, IndexRetry(0))
        removals.finish_removals(sender)
        removals.remove_documents(sender, completed=True)

    def totals(self) -> tuple[int, int]:
        """How many documents are in the index by the table, and how many wait."""
        totals = self.run.read(lambda transaction: document_table.count_totals(transaction, self.run.source_id))
        return totals["documents"], totals["quarantined"]

    def count_recent(self) -> int:
        return self.run.read(
            lambda transaction: removal_table.count_recent(
                transaction, self.run.source_id, since_ms=clock.now_ms() - 1000
            )
        )


def killed(work: Callable[[], None], at: str) -> None:
    """Does ``work`` in a process that kills itself at a failpoint; it must open its store by itself."""
    child = os.fork()
    if child == 0:
        os.environ["SEARCHCRAWL_FAILPOINT"] = at
        # It reads the environment once, when it is loaded.
        importlib.reload(failpoints)
        try:
            work()
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize("at", ["delete.selected:1", "delete.selected:3", "delete.selected:7"])
def test_removals_when_killed_between_pages_that_are_held_back_then_all_wait(
    tmp_path: Path, store_url: str, at: str
) -> None:
    def work() -> None:
        store = Store(tmp_path, store_url)
        store.delete(30)
        store.remove()

    killed(work, at)
    after = Store(tmp_path, store_url)
    before = after.totals()

    after.remove()

    assert before == (40, PAGE * int(at[-1]))
    assert after.totals() == (40, 30)
    assert len(after.indexed_urls()) == 40
    assert after.run.copy_counts()["deleted"] == 0
    after.end(exit_code=9)
    assert {row["run"] for row in quarantine.list_waiting(after.database, after.source)} == {after.run.id}
    after.close()


@pytest.mark.few(4)
@pytest.mark.parametrize("point", ["delete.selected", "delete.sent", "delete.marked", "commit.sent"])
@pytest.mark.parametrize(("gone", "unlimited", "number"), [(10, False, 2), (30, True, 3)])
def test_removals_when_killed_between_pages_that_are_removed_then_the_rest_is_removed_too_and_counted_once(
    tmp_path: Path, store_url: str, point: str, gone: int, unlimited: bool, number: int
) -> None:
    def work() -> None:
        store = Store(tmp_path, store_url)
        store.delete(gone)
        store.remove(unlimited=unlimited)

    killed(work, f"{point}:{number}")
    after = Store(tmp_path, store_url)

    after.remove(unlimited=unlimited)

    assert after.totals() == (40 - gone, 0)
    assert after.indexed_urls() == list(PATHS[gone:])
    assert (after.run.copy_counts()["deleted"], after.count_recent()) == (gone, gone)
    after.close()


def test_approve_when_it_is_killed_between_pages_then_the_rest_goes_on_waiting(tmp_path: Path, store_url: str) -> None:
    def work() -> None:
        store = Store(tmp_path, store_url)
        store.delete(30)
        store.remove()
        store.end(exit_code=9)
        quarantine.approve(store.project, store.source, store.database, store.index)

    # Eight pages are held back before.
    killed(work, "delete.selected:11")
    after = Store(tmp_path, store_url)
    before = after.totals()
    after.remove()
    middle = after.totals()
    after.end(exit_code=9)
    done = quarantine.approve(after.project, after.source, after.database, after.index)

    assert before == (40 - 2 * PAGE, 30 - 3 * PAGE)
    # What was sealed is sent, and approved removals do not count.
    assert (middle, after.count_recent()) == ((40 - 3 * PAGE, 30 - 3 * PAGE), 0)
    assert (done["removed"], after.totals()) == (30 - 3 * PAGE, (10, 0))
    after.close()
