"""One word for the state of a URL, drawn from both axes of its row; the views say the same in SQL (``store.views``)."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from searchcrawl.codes import WITH_DOCUMENT, Code, CodeClass, facts_of, is_refusal
from searchcrawl.rules.lifecycle import is_evidence
from searchcrawl.store.states import DocumentState, FetchState

if TYPE_CHECKING:
    from searchcrawl.store.urls.url_queries import ListedUrl


class UrlState(StrEnum):
    """The state of a URL, drawn from both axes of its row."""

    #: to be fetched
    TODO = "todo"
    #: handed out to the running process
    FETCHING = "fetching"
    #: fetched, and in no delivery yet
    CACHED = "cached"
    #: in a delivery without a receipt
    SENDING = "sending"
    #: the index acknowledged it as it is
    INDEXED = "indexed"
    #: fetched, but not to be indexed: empty, noindex, moved, led to what a rule refuses
    EXCLUDED = "excluded"
    #: a rule refused it, without a request
    REJECTED = "rejected"
    #: another URL has the same content, or is the canonical one
    DUPLICATE = "duplicate"
    #: the last fetch failed, or the index refuses the document; the known document may still be in the index
    FAILED = "failed"
    #: was a document; its removal is under way or done
    GONE = "gone"


#: The state of a row whose last visit was answered, by the class of its code.
STATE_BY_CLASS: Final = {
    CodeClass.COPY: UrlState.DUPLICATE,
    CodeClass.EXCLUDED: UrlState.EXCLUDED,
    CodeClass.DISPLAY: UrlState.EXCLUDED,
    CodeClass.REDIRECT: UrlState.EXCLUDED,
    CodeClass.ABSENT: UrlState.EXCLUDED,
    # It waits until it may be requested for the first time.
    CodeClass.PENDING: UrlState.TODO,
}
#: The state of a row with 200.
STATE_BY_DOCUMENT: Final = {
    DocumentState.NONE: UrlState.GONE,
    DocumentState.CACHED: UrlState.CACHED,
    DocumentState.SENDING: UrlState.SENDING,
    DocumentState.PRESENT: UrlState.INDEXED,
    DocumentState.WITHHELD: UrlState.DUPLICATE,
    DocumentState.QUARANTINED: UrlState.INDEXED,
    DocumentState.RECORD_LOST: UrlState.TODO,
}


#: Codes of documents that were known before they were removed.
WAS_DOCUMENT: Final = WITH_DOCUMENT - {Code.DISPLAY_URL_CLASH}


def derive_url_state(row: ListedUrl, remove_on: Collection[int]) -> UrlState:
    """The state of a row; ``remove_on`` are the statuses that remove a document of the source."""
    if row.fetch_state != FetchState.SETTLED:
        return UrlState.TODO if row.fetch_state in {FetchState.TODO, FetchState.SUSPECT} else UrlState.FETCHING
    if row.document_state == DocumentState.REMOVING or _was_removed(row, remove_on):
        return UrlState.GONE
    by_class = STATE_BY_CLASS.get(facts_of(row.code).kind)
    if by_class is not None:
        return by_class
    if row.rule is not None and is_refusal(row.code, row.rule):
        # A page that led to a URL which a rule refuses was requested itself.
        return UrlState.REJECTED if row.redirects is None else UrlState.EXCLUDED
    if row.code != 200 or row.document_state is None:
        return UrlState.FAILED
    if row.document_state == DocumentState.WITHHELD and row.index_error is not None:
        return UrlState.FAILED
    return STATE_BY_DOCUMENT[row.document_state]


def _was_removed(row: ListedUrl, remove_on: Collection[int]) -> bool:
    known = row.document_state == DocumentState.NONE and row.document_code in WAS_DOCUMENT
    return known and row.indexed_version is None and is_evidence(row.code, row.rule, remove_on)
