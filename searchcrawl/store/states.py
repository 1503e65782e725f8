"""The two axes of a URL row, never one (requirements, decision 8), and the states of batches and runs."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class FetchState(IntEnum):
    """Where a URL stands on its way to being fetched."""

    #: to be fetched once it is due
    TODO = 0
    #: handed out to the running process; after a crash it is TODO again
    FETCHING = 1
    #: the last visit ended with ``code``
    SETTLED = 2


class DocumentState(IntEnum):
    """Where the document of a URL stands on its way to the index."""

    #: nothing to be indexed
    NONE = 0
    #: in the cache, to be sent
    CACHED = 1
    #: in a sealed batch
    SENDING = 2
    #: the index acknowledged it
    PRESENT = 3
    #: in the cache, not to be sent: a copy of another, or refused by the index
    WITHHELD = 4
    #: its removal is being sent
    REMOVING = 5
    #: its removal waits for an approval
    QUARANTINED = 6
    #: to be sent, but its record is gone: the page is fetched again; the index may hold an earlier version
    WANTED = 7


class BatchState(IntEnum):
    """Where a delivery stands; it goes on from there after a crash."""

    #: its documents and their versions are fixed; it may be sent
    SEALED = 0
    #: each of its documents has a receipt
    ACKNOWLEDGED = 1
    #: the index made it durable and visible
    COMMITTED = 2


class RunKind(StrEnum):
    """What a run is for its source."""

    INITIAL = "initial"
    MAINTENANCE = "maintenance"


class EndReason(StrEnum):
    """Why a run ended."""

    #: nothing was left to do
    FINISHED = "finished"
    #: `limit=N` was reached
    LIMIT = "limit"
    #: `fetch.max_minutes` passed
    MAX_MINUTES = "max_minutes"
    #: a signal or a stop ended it
    STOPPED = "stopped"
    #: the cache is full of what the index does not take
    INDEX_AWAY = "index_away"
    #: the store or a disk failed
    STORE_FAILED = "store_failed"
