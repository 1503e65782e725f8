"""A look at the index: has it what it acknowledged? It costs a few requests.

An index that is away says nothing: it may be back soon. One that is no index (damaged, another address) is a finding.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from searchcrawl import urls
from searchcrawl.exceptions import DeliveryError, IndexMisconfigured, SearchcrawlError, StoreError
from searchcrawl.index.opening import use_index
from searchcrawl.index.receiver import Receiver, SearchIndex, SearchQuery
from searchcrawl.sources.project import Project
from searchcrawl.store.documents import comparison_table
from searchcrawl.store.documents.comparison_table import WINDOWS, BelievedDocument
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import run_table
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

#: With fewer of its documents than this an index counts as emptied.
_HARDLY_ANY: Final = 0.1


class Finding(NamedTuple):
    """What is wrong with an index, as a warning of ``status``; the message names the command that mends it."""

    code: str
    message: str


#: The codes of findings.
FINDINGS: Final = ("store_older", "index_emptied", "index_older", "index_unusable")


class IndexLook:
    """Compares samples of sources with one index; once it cannot be read it is not asked again.

    ``windows`` is how many places of the table a sample is taken from, besides the newest documents. An error in place of
    the index is why it could not be opened.
    """

    def __init__(self, index: Receiver | DeliveryError, *, windows: int = WINDOWS) -> None:
        self._windows = windows
        self._index = index if isinstance(index, SearchIndex) else None
        self._unusable: Finding | None = None
        if isinstance(index, DeliveryError):
            self._give_up(index)

    def find(self, database: Database, name: str) -> Finding | None:
        """What is wrong with the documents of a source; None also where nothing can be said. Raises StoreError."""
        if self._index is not None:
            try:
                return _find(self._index, database, name, self._windows)
            except StoreError:
                raise
            except SearchcrawlError as error:
                self._give_up(error)
        return self._unusable

    def _give_up(self, error: SearchcrawlError) -> None:
        logger.debug("the index cannot be looked at: %s", error)
        self._index = None
        if isinstance(error, IndexMisconfigured):
            self._unusable = Finding("index_unusable", f"the index cannot be read: {error}")


@contextmanager
def look_at_index(project: Project) -> Iterator[IndexLook]:
    """The index of a project, for a command that goes on without it."""
    with ExitStack() as stack:
        try:
            look = IndexLook(stack.enter_context(use_index(project)))
        except DeliveryError as error:
            look = IndexLook(error)
        yield look


def is_newer(index: SearchIndex, database: Database, name: str) -> int:
    """The highest version that the index has of a source if the store does not know it, else 0.

    Then the store is older than the index: it was put back from a copy, or made anew. Raises DeliveryError, StoreError.
    """
    highest = index.find_highest_version(name)

    def is_known(transaction: Transaction) -> bool:
        source_id = run_table.find_source(transaction, name)
        return source_id is not None and comparison_table.knows_version(transaction, source_id, highest)

    # The index was asked first: the store knows each version before the index does.
    return 0 if not highest or database.read(is_known) else highest


def require_known(index: SearchIndex, database: Database, name: str) -> None:
    """Raises DeliveryError where the index has versions of a source that the store does not know, and StoreError."""
    if is_newer(index, database, name):
        raise DeliveryError(
            f"the index has versions of {name} that the store does not know: searchcrawl crawl {name} brings both together first"
        )


def has_documents(index: SearchIndex, name: str) -> bool:
    """Whether the index has any document of a source; one that was deleted has left tombstones."""
    return index.search(SearchQuery(words="*", source=name, rows=1)).total > 0


def _find(index: SearchIndex, database: Database, name: str, windows: int) -> Finding | None:
    # Without documents there is nothing that could be brought together.
    if is_newer(index, database, name) and has_documents(index, name):
        return Finding(
            "store_older",
            f"the index has versions of {name} that the store does not know: the store is older, or new; to bring both"
            f" together: searchcrawl crawl {name}",
        )
    return look_at_sample(index, database, name, windows=windows)


def look_at_sample(index: SearchIndex, database: Database, name: str, *, windows: int = WINDOWS) -> Finding | None:
    """What an index lacks of a sample of a source; None where it has all of them. Raises DeliveryError, StoreError."""

    def read(transaction: Transaction) -> _Rows | None:
        source_id = run_table.find_source(transaction, name)
        return None if source_id is None else _read_rows(transaction, source_id, windows)

    rows = database.read(read)
    if rows is None:
        return None
    sample = _compare(index, database, name, rows)
    missing = {row for row in sample.believed if sample.version_of(row) is None}
    lost = [row for row in sample.differing if (sample.version_of(row) or 0) < row.crawl_version]
    return _describe(
        name, len(sample.believed), missing=len(missing.intersection(lost)), lost=len(lost), back=len(sample.back)
    )


def count_differing(index: SearchIndex, database: Database, name: str, source_id: int) -> tuple[int, int]:
    """Looks at a sample of a source; returns how many documents it has, and how many differ. Raises as above."""
    sample = _compare(index, database, name, database.read(_read_rows, source_id=source_id))
    return len(sample.believed) + sample.removed, len(sample.differing) + len(sample.back)


class _Rows(NamedTuple):
    """What the table believes of documents that the index should have, and of some that it must not have."""

    source_id: int
    believed: Sequence[BelievedDocument]
    removed: Sequence[BelievedDocument]


class _Sample(NamedTuple):
    """Documents that an index should have, and what it has of them; ``back`` are ``removed`` ones that it has."""

    believed: Sequence[BelievedDocument]
    differing: Sequence[BelievedDocument]
    removed: int
    back: Collection[BelievedDocument]
    ids: Mapping[int, str]
    versions: Mapping[str, int]

    def version_of(self, row: BelievedDocument) -> int | None:
        return self.versions.get(self.ids[row.url_id])


def _read_rows(transaction: Transaction, source_id: int, windows: int = WINDOWS) -> _Rows:
    return _Rows(
        source_id,
        comparison_table.sample(transaction, source_id, windows=windows),
        comparison_table.sample_removed(transaction, source_id),
    )


def _compare(index: SearchIndex, database: Database, name: str, rows: _Rows) -> _Sample:
    believed, removed = rows.believed, rows.removed
    ids = {row.url_id: urls.document_id(name, row.url) for row in [*believed, *removed]}
    versions = index.find_versions(ids.values())
    other = [row for row in believed if versions.get(ids[row.url_id]) != row.crawl_version]
    back = {row for row in removed if ids[row.url_id] in versions}
    # Another process may have changed them meanwhile.
    differing = database.read(comparison_table.keep_unchanged, rows=other) if other else other
    if back:
        back &= {*database.read(comparison_table.sample_removed, source_id=rows.source_id)}
    return _Sample(believed, differing, len(removed), back, ids, versions)


def _describe(name: str, looked: int, *, missing: int, lost: int, back: int) -> Finding | None:
    mend = f"to fill it again: searchcrawl resend {name}"
    if looked and looked - missing <= looked * _HARDLY_ANY:
        has = f"only {looked - missing}" if looked > missing else "none"
        return Finding(
            "index_emptied",
            f"the index has {has} of {counted(looked, 'document', 'documents')} of {name} that it acknowledged: it is gone or was emptied; {mend}",
        )
    if lost or back:
        return Finding(
            "index_older",
            f"of {counted(looked, 'document', 'documents')} of {name} that the index acknowledged it lacks {lost}, or has older versions of them,"
            f" and it has {back} that were removed: it is older than the store; {mend}",
        )
    return None
