"""The states of URL rows, documents, deliveries and runs, with every transition of deliveries and who makes it.

Those of rows and documents are in ``urls/fetch_events.py`` and ``documents/document_events.py``.

A URL row has two independent states: how far its next visit is (``FetchState``), and how far its document is on the way
to the index (``DocumentState``). Conditions in SQL and reference pages are derived from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple, Self


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What is known of one state; ``title`` is how answers show it, ``meaning`` a sentence for the reference."""

    number: int
    title: str
    meaning: str
    #: a delivery has to act on the document, or an operator has to approve its removal
    pending: bool = False
    #: the document belongs in the index, or it is a copy of one that does
    indexable: bool = False
    #: the document belongs in the index itself
    shown: bool = False
    #: the document is to be sent, and in no delivery yet
    unsent: bool = False
    #: the document is in a delivery, or its removal is, without a receipt
    moving: bool = False
    #: the index has the document, and no delivery changes that
    delivered: bool = False
    #: the cache or the index has the document: a visit without changes keeps it
    at_hand: bool = False


class State(IntEnum):
    """A state, with its ``facts``."""

    facts: StateFacts

    def __new__(cls, facts: StateFacts) -> Self:
        """A member whose value is the number alone."""
        state = int.__new__(cls, facts.number)
        state._value_ = facts.number
        state.facts = facts
        return state


class FetchState(State):
    """How far the next visit of a URL is."""

    TODO = StateFacts(0, "to do", "The URL is to be visited once it is due.")
    FETCHING = StateFacts(1, "fetching", "The running process has claimed the URL; after a crash it is to do again.")
    SETTLED = StateFacts(2, "settled", "The last visit ended with the code of the row, or a rule refused the URL.")
    SUSPECT = StateFacts(
        3,
        "to do, after all others and alone",
        "The URL was being visited when a run stopped turning: it may be the reason.",
    )
    ALONE = StateFacts(
        4, "fetching, alone", "The running process has claimed the URL, and no other: if it stops turning, this is why."
    )


class DocumentState(State):
    """How far the document of a URL is on its way to the index."""

    NONE = StateFacts(
        0, "nothing is to be indexed", "There is no document; the index may hold an earlier version until its removal."
    )
    CACHED = StateFacts(
        1,
        "the document waits to be sent",
        "The document is in the cache, and in no delivery yet.",
        pending=True,
        indexable=True,
        shown=True,
        unsent=True,
        at_hand=True,
    )
    SENDING = StateFacts(
        2,
        "the document is being sent",
        "The document is in a sealed delivery, and has no receipt yet.",
        pending=True,
        indexable=True,
        shown=True,
        moving=True,
        at_hand=True,
    )
    PRESENT = StateFacts(
        3,
        "the document is there as it is",
        "The index has acknowledged the document as the cache has it.",
        indexable=True,
        shown=True,
        delivered=True,
        at_hand=True,
    )
    WITHHELD = StateFacts(
        4,
        "the document is kept in the cache, and not sent",
        "The document is in the cache and is not sent: it is a copy of another one, or the index refused it.",
        indexable=True,
        at_hand=True,
    )
    REMOVING = StateFacts(
        5,
        "the document is being removed",
        "The removal is in a sealed delivery, and has no receipt yet.",
        pending=True,
        moving=True,
    )
    QUARANTINED = StateFacts(
        6,
        "its removal waits for an approval",
        "There are more removals than the limits of the source allow at once: an operator has to approve this one.",
        pending=True,
        at_hand=True,
        delivered=True,
    )
    RECORD_LOST = StateFacts(
        7,
        "to be sent, and its copy is gone: it is fetched again",
        "The document is to be sent, but the cache has lost it: its page is fetched again. The index may hold an "
        "earlier version.",
        indexable=True,
        shown=True,
        unsent=True,
    )


class BatchState(State):
    """How far a delivery is; after a crash it goes on from here."""

    SEALED = StateFacts(0, "not yet acknowledged", "The documents of the delivery are fixed; some have no receipt.")
    ACKNOWLEDGED = StateFacts(1, "acknowledged", "Each document of the delivery has a receipt.")
    COMMITTED = StateFacts(2, "acknowledged and visible", "The index has made the delivery durable and visible.")


class Transition(NamedTuple):
    """A change of state; ``before`` is empty for a new row, ``by`` is the package that makes the change."""

    before: tuple[State, ...]
    after: State
    reason: str
    by: str


_B = BatchState

BATCH_TRANSITIONS: Final = (
    Transition((), _B.SEALED, "cached documents, or removals, are put into a delivery", "commit and delivery"),
    Transition((_B.SEALED,), _B.ACKNOWLEDGED, "the last receipt is noted", "delivery"),
    Transition((_B.ACKNOWLEDGED,), _B.COMMITTED, "the index has committed", "delivery"),
)

#: URLs that a process has claimed, or had when it stopped turning.
CLAIMED: Final = frozenset({FetchState.FETCHING.value, FetchState.SUSPECT.value, FetchState.ALONE.value})
#: Documents that wait for a delivery, or for an operator's approval.
PENDING: Final = frozenset(state.value for state in DocumentState if state.facts.pending)
#: Documents that belong in the index, or are copies of one that does.
INDEXABLE: Final = frozenset(state.value for state in DocumentState if state.facts.indexable)
#: Documents of the index whose removal is under way, or waits for an approval.
REMOVALS: Final = frozenset({DocumentState.REMOVING.value, DocumentState.QUARANTINED.value})
#: Documents that belong in the index themselves; those of them that no delivery has.
SHOWN: Final = frozenset(state.value for state in DocumentState if state.facts.shown)
UNSENT: Final = frozenset(state.value for state in DocumentState if state.facts.unsent)
#: Documents in a delivery without a receipt, also those that are removed.
MOVING: Final = frozenset(state.value for state in DocumentState if state.facts.moving)
#: Documents of the index that no delivery changes.
DELIVERED: Final = frozenset(state.value for state in DocumentState if state.facts.delivered)
#: Documents that the cache or the index has.
AT_HAND: Final = frozenset(state.value for state in DocumentState if state.facts.at_hand)


class RunKind(StrEnum):
    """What a run is for its source."""

    INITIAL = "initial"
    MAINTENANCE = "maintenance"


class Leaving(IntEnum):
    """Why a document is to leave the index at the end of a run."""

    #: it is not
    NO = 0
    #: a visit, or an edited rule, says that it is to go
    EVIDENCE = 1
    #: no page, sitemap or start list names its URL any more (``lifecycle.orphans``)
    ORPHAN = 2
    #: its visits failed in too many runs (``lifecycle.error_runs_before_hidden``)
    FAILED = 3


class Sharing(IntEnum):
    """Whether documents of a source may be copies of those of other sources (``copies.scope``)."""

    NO = 0
    YES = 1
    #: no longer, and not all of those that are have been decided about
    ENDS = 2


class EndReason(StrEnum):
    """Why a run ended."""

    #: nothing was left to do
    FINISHED = "finished"
    #: what the cache holds was processed again, and other URLs are left to be fetched (`apply`)
    APPLIED = "applied"
    #: `limit=N` was reached
    LIMIT = "limit"
    #: `fetch.max_minutes` passed
    MAX_MINUTES = "max_minutes"
    #: a plug-in failed at too many documents
    PLUGIN_ERRORS = "plugin_errors"
    #: a signal or a stop ended it
    STOPPED = "stopped"
    #: the cache is full of documents that the index does not take
    INDEX_AWAY = "index_away"
    #: the store or a disk failed
    STORE_FAILED = "store_failed"
