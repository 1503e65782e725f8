"""The edit of a scope that drops every document of a table, in processes of their own; called by benchmarks/scale.py.

python -m benchmarks.scale_drop fill|hold|remove STORE_URL SIZE FOLDER: the figures as JSON on standard output.
``hold`` reviews the rows and puts all removals into quarantine, as the limits say; ``remove`` carries them out, with
limits that allow it, through a receiver that acknowledges everything.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.scale_measure import finish, peak_rss_bytes
from benchmarks.scale_table import SOURCE, fill
from searchcrawl import run
from searchcrawl.admission.admit import Admission
from searchcrawl.cache.document_cache import DocumentCache
from searchcrawl.cache.folder import SegmentFolder
from searchcrawl.commit.review import Review
from searchcrawl.delivery.batch_sender import BatchSender
from searchcrawl.delivery.index_retry import IndexRetry
from searchcrawl.delivery.removals import remove_documents
from searchcrawl.index.receiver import Batch, Receipt
from searchcrawl.run import Run
from searchcrawl.sources import loading
from searchcrawl.store.documents import document_table
from searchcrawl.store.engine.database import Database

_PROJECT: Final = 'contact = "bench@example.org"\n\n[store]\nurl = "{url}"\n'
_SOURCE: Final = """\
type = "web"

[start]
urls = ["http://www0.site.example/"]

[scope]
include_hosts = ["site.example"]
{scope}
[lifecycle]
{lifecycle}
"""
_DROPS_ALL: Final = 'exclude_urls = ["*.html"]\n'
_ALLOWS_ALL: Final = "max_delete_percent = 100\nmax_delete_documents = 1000000000\n"
_BACK_IN_THE_INDEX: Final = "UPDATE documents SET state = 3, quarantine_run = NULL, held_state = NULL WHERE state = 6"


class Acknowledging:
    """A receiver that acknowledges everything."""

    def begin(self, source: str, run: int) -> None:
        """Does nothing."""

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        """Acknowledges all."""
        return [Receipt(removal.id, accepted=True) for removal in batch.removals]

    def end(self, outcome: str) -> None:
        """Does nothing."""


class Dropping:
    """A table of documents; every method notes what it measured in ``figures``."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.figures: dict[str, float] = {}
        self._folder = folder
        self._url = database_url
        self._database = Database(database_url, folder)

    def hold(self, size: int) -> None:
        """The review of the rows, and the removals into quarantine."""
        self._begin().end("finished", 0)
        edited = self._begin(scope=_DROPS_ALL)
        admission = Admission(source_id=edited.source_id, boundary=edited.boundary, max_urls=0, known_urls=0)
        review = Review(edited, admission, hold=lambda: lambda: None)
        self._timed("review_seconds", lambda: finish(review))
        self._timed("hold_seconds", lambda: remove_documents(self._sender(edited), completed=True))
        edited.end("finished", 9)
        self._check(edited, {"documents": size, "waiting": 0, "quarantined": size})
        self.figures["hold_peak_rss_bytes"] = peak_rss_bytes()
        # Here, because one large statement needs more memory than what is measured.
        with self._database.write_once() as transaction:
            transaction.exec_driver_sql(_BACK_IN_THE_INDEX)

    def remove(self) -> None:
        """The same removals, carried out."""
        again = self._begin(scope=_DROPS_ALL, lifecycle=_ALLOWS_ALL)
        self._timed("remove_seconds", lambda: remove_documents(self._sender(again), completed=True))
        again.end("finished", 0)
        self._check(again, {"documents": 0, "waiting": 0, "quarantined": 0})
        self.figures["remove_peak_rss_bytes"] = peak_rss_bytes()

    def _begin(self, *, scope: str = "", lifecycle: str = "") -> Run:
        sources = self._folder / "sources"
        sources.mkdir(exist_ok=True)
        (self._folder / "searchcrawl.toml").write_text(_PROJECT.format(url=self._url), encoding="utf-8")
        (sources / f"{SOURCE}.toml").write_text(_SOURCE.format(scope=scope, lifecycle=lifecycle), encoding="utf-8")
        project = loading.load_project(self._folder)
        return run.begin(project, loading.load_source(project, SOURCE), self._database)

    def _sender(self, dropping: Run) -> BatchSender:
        return BatchSender(
            dropping, Acknowledging(), DocumentCache(SegmentFolder(self._folder / "cache"), self._folder), IndexRetry(0)
        )

    def _check(self, ended: Run, expected: dict[str, int]) -> None:
        totals = ended.read(lambda transaction: document_table.count_totals(transaction, ended.source_id))
        if totals != expected:
            raise SystemExit(f"scale: {totals}, not {expected}")

    def _timed(self, figure: str, work: Callable[[], None]) -> None:
        began = time.perf_counter()
        work()
        self.figures[figure] = time.perf_counter() - began


def main(what: str, database_url: str, size: str, folder: str) -> None:
    """Fills, holds back or removes; prints the figures."""
    figures: dict[str, Any] = {}
    if what == "fill":
        database = Database(database_url, Path(folder))
        fill(database, int(size), documents_alone=True)
        database.close()
    else:
        dropping = Dropping(Path(folder), database_url)
        dropping.hold(int(size)) if what == "hold" else dropping.remove()
        figures = dropping.figures
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
