"""The one word for a URL, drawn from both axes of its row (interface.md §2); pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from searchcrawl.codes import ROBOTS_UNAVAILABLE, WITH_DOCUMENT, Code, CodeClass, facts_of
from searchcrawl.rules.removal import is_evidence
from searchcrawl.store.states import DocumentState, FetchState
from searchcrawl.store.urls.url_queries import ListedUrl


class UrlState(StrEnum):
    """Where a URL stands."""

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
    #: fetched, but not to be indexed: empty, noindex, moved
    EXCLUDED = "excluded"
    #: a rule said no, without a request
    REJECTED = "rejected"
    #: another URL has the same content, or is the canonical one
    DUPLICATE = "duplicate"
    #: the last fetch failed, or the index refuses the document; the known document may still be in the index
    FAILED = "failed"
    #: was a document; its removal is under way or done
    GONE = "gone"


#: What the classes of codes of a visit that was answered are shown as.
_BY_CLASS: Final = {
    CodeClass.COPY: UrlState.DUPLICATE,
    CodeClass.EXCLUDED: UrlState.EXCLUDED,
    CodeClass.DISPLAY: UrlState.EXCLUDED,
    CodeClass.REDIRECT: UrlState.EXCLUDED,
}
_BY_DOCUMENT: Final = {
    DocumentState.NONE: UrlState.GONE,
    DocumentState.CACHED: UrlState.CACHED,
    DocumentState.SENDING: UrlState.SENDING,
    DocumentState.PRESENT: UrlState.INDEXED,
    DocumentState.WITHHELD: UrlState.DUPLICATE,
    DocumentState.QUARANTINED: UrlState.INDEXED,
    DocumentState.WANTED: UrlState.TODO,
}


def url_state(row: ListedUrl, remove_on: Collection[int]) -> UrlState:
    """The word for a row; ``remove_on`` are the statuses that remove a document of the source."""
    if row.fetch_state != FetchState.SETTLED:
        return UrlState.TODO if row.fetch_state == FetchState.TODO else UrlState.FETCHING
    if row.document_state == DocumentState.REMOVING or _was_removed(row, remove_on):
        return UrlState.GONE
    by_class = _BY_CLASS.get(facts_of(row.code).kind)
    if by_class is not None:
        return by_class
    if _without_request(row):
        return UrlState.REJECTED
    if row.code != 200 or row.document_state is None:
        return UrlState.FAILED
    if row.document_state == DocumentState.WITHHELD and row.index_error is not None:
        return UrlState.FAILED
    return _BY_DOCUMENT[row.document_state]


def _was_removed(row: ListedUrl, remove_on: Collection[int]) -> bool:
    known = row.document_state == DocumentState.NONE and row.document_code in WITH_DOCUMENT - {Code.DISPLAY_URL_CLASH}
    return known and row.indexed_version is None and is_evidence(row.code, row.rule, remove_on)


def _without_request(row: ListedUrl) -> bool:
    """Whether a rule settled the row; a redirect into what robots.txt forbids counts as one."""
    if row.rule is None or row.rule == ROBOTS_UNAVAILABLE:
        return False
    return row.last_fetched_ms is None or row.code in {Code.ROBOTS, Code.OUTSIDE_BOUNDARY}
