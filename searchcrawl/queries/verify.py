"""``verify``: compares the documents of the index with those that the URL table has receipts for (L4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from searchcrawl.comparison.differences import Difference, Spool, Treatment, find_differences, spool_differences
from searchcrawl.exceptions import UnsupportedByIndex
from searchcrawl.index.receiver import Receiver, SearchIndex
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table

#: The lists of differences, in their order.
KINDS: Final = ("missing", "extra", "stale", "foreign")


@dataclass(slots=True)
class Verified:
    """What differs, by kind, on the disk; ``repaired`` of them were mended."""

    found: Mapping[str, Spool[Difference]]
    repaired: int = 0

    @property
    def ok(self) -> bool:
        """Whether no difference stands any more."""
        return self.repaired == sum(len(spool) for spool in self.found.values())

    def count_by_source(self) -> Counter[str]:
        """How many differences stand, by the source that their ids begin with."""
        every = (each for spool in self.found.values() for each in spool)
        return Counter(each.suspect.id.partition(":")[0] for each in every if not each.mended)

    def describe(self, kind: str) -> Iterator[dict[str, str]]:
        """The list of a kind, as ``verify --json`` prints it."""
        return (each.describe() for each in self.found[kind])


@contextmanager
def verify(
    database: Database,
    receiver: Receiver,
    sources: Collection[str],
    *,
    only: str | None,
    treat: Treatment | None = None,
) -> Iterator[Verified]:
    """What differs, for all sources of a project, or for the one named by ``only``; kept on the disk meanwhile.

    ``sources`` are the names of all source files: documents of other sources are foreign. Each difference is looked at
    once more before it is named: a crawl may go on meanwhile. ``treat`` may mend those of a source.
    Raises UnsupportedByIndex, DeliveryError, StoreError, OSError.
    """
    if not isinstance(receiver, SearchIndex):
        raise UnsupportedByIndex(f"{type(receiver).__name__} cannot list its documents")
    with ExitStack() as stack:
        verified = Verified({kind: stack.enter_context(spool_differences()) for kind in KINDS})
        for each in find_differences(database, receiver, sources, only=only, treat=treat):
            verified.found[each.kind].add(each)
            verified.repaired += each.mended
        yield verified


def list_crawled_sources(database: Database, sources: Collection[str]) -> list[str]:
    """Those of ``sources`` that a process is crawling now: what it has under way is no difference."""

    def find_held(transaction: Transaction) -> list[str]:
        names = run_table.find_source_names(transaction)
        return sorted(name for id_, name in names.items() if name in sources and lease.is_held(transaction, id_))

    return database.read(find_held)
