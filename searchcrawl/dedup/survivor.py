"""Which of several copies is indexed: decided by rule, so that no order of fetching matters (F2, F3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from searchcrawl.codes import Code
from searchcrawl.store.document_table import Copy
from searchcrawl.store.states import DocumentState


class CopyChange(NamedTuple):
    """What becomes of one copy."""

    url_id: int
    state: DocumentState
    duplicate_of: int | None
    code: int


def rank(url: str) -> tuple[bool, int, int, str]:
    """The best copy has the smallest rank: no query, few segments, short, first by alphabet."""
    return ("?" in url, url.count("/"), len(url), url)


def resolve(copies: Iterable[Copy]) -> list[CopyChange]:
    """The changes that leave one survivor of each body and make the others known copies of it."""
    classes: dict[bytes, list[Copy]] = defaultdict(list)
    for copy in copies:
        classes[copy.body_digest].append(copy)
    return [change for members in classes.values() for change in _resolve_class(members)]


def _resolve_class(members: Sequence[Copy]) -> list[CopyChange]:
    survivor = min(members, key=lambda copy: rank(copy.url))
    others = [copy for copy in members if copy is not survivor]
    changes = [
        CopyChange(copy.url_id, DocumentState.WITHHELD, survivor.url_id, Code.DUPLICATE)
        for copy in others
        if copy.duplicate_of != survivor.url_id or copy.state != DocumentState.WITHHELD
    ]
    promoted = survivor.duplicate_of is not None or survivor.state == DocumentState.WITHHELD
    # Its list of duplicates is indexed too: a change of it is a change of the document.
    if promoted or (changes and survivor.state != DocumentState.CACHED):
        changes.append(CopyChange(survivor.url_id, DocumentState.CACHED, None, 200))
    return changes
