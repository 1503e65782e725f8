"""What takes documents: the Receiver of interface.md §5, and the SearchIndex that can also answer.

Receivers are called from one delivery thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from searchcrawl.items import IndexedDocument, Removal


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A part of a delivery, of at most some MB: documents to store, or ids to remove.

    ``crawl_version`` rises with each delivery: an index ignores what is older than what it has,
    for removals too. ``number`` is the delivery's; a repeated batch repeats both.
    """

    number: int
    source: str
    crawl_version: int
    documents: Sequence[IndexedDocument] = ()
    removals: Sequence[Removal] = ()


class Receipt(NamedTuple):
    """What became of one document or removal; ``error`` is the index's reason for a refusal."""

    id: str
    accepted: bool
    error: str | None = None


class IndexEntry(NamedTuple):
    """A committed document of the index, as ``scan`` tells it."""

    id: str
    crawl_version: int
    checksum: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A query of interface.md §2; ``filters`` are exact (field, value) pairs, ``sort`` is ``field`` or ``-field``.

    Fields are those of the index: an attribute's name has its suffix. ``attributes`` are the fields
    that words may be limited to as in ``version:2``, by lower-case name.
    """

    words: str
    source: str | None = None
    groups: Sequence[str] = ()
    filters: Sequence[tuple[str, str]] = ()
    rows: int = 10
    start: int = 0
    sort: str | None = None
    facets: Sequence[str] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A found document: its stored fields, and a plain-text snippet whose hits stand between U+E000 and U+E001."""

    id: str
    score: float
    snippet: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """What ``search`` found; ``facets`` is {field: {value: count}}."""

    total: int
    hits: Sequence[Hit] = ()
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class Receiver(Protocol):
    """Takes documents and removals (K3); made again by name after a crash."""

    def begin(self, source: str, run: int) -> None:
        """Called before the first delivery of a run."""

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        """Stores and removes; one receipt a document or removal, in their order.

        Raises IndexUnavailable (tried again with pauses) or IndexMisconfigured (not tried again);
        either keeps the whole batch. Doing the same batch twice does no harm.
        """

    def end(self, outcome: str) -> None:
        """Called once a run is over: ``finished``, ``stopped`` or ``failed``."""


@runtime_checkable
class SearchIndex(Receiver, Protocol):
    """A receiver that can be searched and compared."""

    def commit(self) -> None:
        """Makes all that was delivered durable and visible; raises as ``deliver``."""

    def scan(self, source: str | None) -> Iterator[IndexEntry]:
        """Every committed document of a source (None: of all), by rising id, without tombstones."""

    def search(self, query: SearchQuery) -> SearchAnswer:
        """Answers a query; raises IndexUnavailable or IndexMisconfigured."""

    def purge(self) -> int:
        """Removes tombstones and deleted documents for good; how many tombstones there were."""

    def ping(self) -> None:
        """Returns if the index is there and fits; raises IndexUnavailable or IndexMisconfigured."""

    def close(self) -> None:
        """Releases files and connections; may be called twice."""
