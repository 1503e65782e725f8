"""Receiver, which takes documents, SearchIndex, which can also be searched, and the values that both use.

A message queue, or what else gets documents and cannot be searched, is a class of a user's own (``[receivers.NAME]``). A new
kind of index needs three things:

1. a package under ``index/`` with the name of the kind, and in its ``receiver.py`` a class with the methods of
   ``Receiver`` (of ``SearchIndex``, if it can be searched) and a function ``open_receiver``;
2. its name and its keys in the table ``[index]`` (class ``Index`` in ``sources/project.py``);
3. the same in the tables ``[receivers.NAME]`` (``sources/receivers_table.py``).

An index that keeps to the ``principals`` of a query says ``hides_documents = True``: another one is not searched as a user.

The delivery calls it from one thread at a time. ``search`` and ``verify`` refuse a receiver that is no SearchIndex.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, Self, runtime_checkable

from searchcrawl.items import IndexedDocument, Removal

#: These marks are around a hit in a snippet; stored text has neither of them.
HIT_START: Final = "\ue000"
HIT_END: Final = "\ue001"
#: What tells which hits are near copies, and where they are.
NEAR_FIELDS: Final = ("url", "source", "duplicates", "text_signature")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One call of ``deliver``: documents to store, some MB at most, or documents to remove.

    ``number`` is that of the sealed batch in the store; a large one comes in several parts. ``crawl_version``
    rises from batch to batch: an index ignores what is older than what it has, for removals too. A batch that
    is sent again has the same number and the same version.
    """

    number: int
    source: str
    crawl_version: int
    documents: Sequence[IndexedDocument] = ()
    removals: Sequence[Removal] = ()


class Receipt(NamedTuple):
    """The result for one document or removal; ``error`` says why the index refuses it."""

    id: str
    accepted: bool
    error: str | None = None


class IndexEntry(NamedTuple):
    """A committed document of the index, as ``scan`` yields it."""

    id: str
    crawl_version: int
    checksum: str
    url: str
    access_url: str = ""
    depth: int = 0

    @classmethod
    def read(cls, document_id: str, stored: Mapping[str, Any]) -> Self:
        """The entry of a document with these fields in the index; others may have written it."""
        version, depth = int(stored.get("crawl_version", 0)), int(stored.get("depth", 0))
        checksum, url, access_url = (str(stored.get(name, "")) for name in ("checksum", "url", "access_url"))
        return cls(document_id, version, checksum, url, access_url, depth)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A query as typed (``words``: the language of index/query.py), with what limits, orders and counts its hits.

    ``filters`` are (field, exact value) pairs, ``sort`` is ``field`` or ``-field``. Fields are those of the index:
    that of an attribute has its suffix. ``attributes`` are the fields that may stand before a colon besides,
    as in ``version:2``, by their lower-case names. Without ``has_snippets`` no text is read for hits, and they need no
    other fields than those of NEAR_FIELDS.
    With ``principals`` only documents are there that somebody with these may see (``access``); None: all.
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
    has_snippets: bool = True
    principals: Collection[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A found document: its stored fields, and a snippet in plain text with hits between HIT_START and HIT_END."""

    id: str
    score: float
    snippet: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """What ``search`` found; ``facets`` is {field: {value: count}}."""

    total: int
    hits: Sequence[SearchHit] = ()
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class Receiver(Protocol):
    """Takes documents and removals (K3); after a crash a new object gets the unfinished batches again.

    Ours are subclasses: they have only those of ``begin`` and ``end`` that do something.
    """

    def begin(self, source: str, run: int) -> None:
        """Called before the first delivery of a run."""
        return

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        """Stores and removes; returns one receipt for each document, then one for each removal, in their order.

        What has a receipt survives a loss of power.

        Raises IndexUnavailable (the delivery calls again, after a pause) or IndexMisconfigured (it does not). After
        either error the whole batch counts as not sent. A batch that is delivered twice does no harm.
        """

    def end(self, outcome: str) -> None:
        """Called after the last delivery of a run, with ``finished``, ``stopped`` or ``failed``."""
        return


@runtime_checkable
class HurryingReceiver(Receiver, Protocol):
    """A receiver that takes documents faster once nothing else needs the processors."""

    def hurry(self) -> None:
        """From now on no page is fetched: only deliveries are left."""


@runtime_checkable
class SpellingIndex(Protocol):
    """A SearchIndex that knows how words are spelled in it."""

    def find_spellings(self, word: str, principals: Collection[str] | None = None) -> Sequence[str]:
        """Words of the index that may be spelled like one that it does not have, in any order; a few hundred at most.

        ``principals`` are as in a query. Words of other documents may be among them: a query tells.
        """


def hides_documents(index: object) -> bool:
    """Whether a SearchIndex leaves out what the ``principals`` of a query may not see; each says so itself."""
    return getattr(index, "hides_documents", False) is True


@runtime_checkable
class LockedIndex(Protocol):
    """A SearchIndex that one process at a time may write to."""

    def wait_for_writer(self) -> None:
        """Returns once a delivery could begin; raises IndexUnavailable and IndexMisconfigured."""


@runtime_checkable
class SearchIndex(Receiver, Protocol):
    """A receiver that can be searched, and compared with the store."""

    def commit(self) -> None:
        """Makes all that was delivered durable and visible to searches; raises as ``deliver``."""

    def scan(self, source: str | None) -> Iterator[IndexEntry]:
        """Every committed document of a source (None: of all), by rising id, without tombstones."""

    def find_versions(self, ids: Collection[str]) -> Mapping[str, int]:
        """The committed versions of those of ``ids`` that are in the index, without tombstones; it waits seconds at most.

        Raises IndexUnavailable or IndexMisconfigured.
        """

    def find_last_versions(self, ids: Collection[str]) -> Mapping[str, int]:
        """The same with tombstones: also the versions of what was removed."""

    def find_highest_version(self, source: str) -> int:
        """The highest version of the documents and the tombstones of a source, 0 without any; as ``find_versions``."""

    def search(self, query: SearchQuery) -> SearchAnswer:
        """Answers a query; raises IndexUnavailable or IndexMisconfigured."""

    def purge(self) -> int:
        """Removes tombstones and deleted documents for good; returns the number of tombstones."""

    def ping(self) -> None:
        """Returns if the index can be reached and has our fields; raises IndexUnavailable or IndexMisconfigured."""

    def close(self) -> None:
        """Releases files and connections; may be called twice."""
