"""Looks once more at documents in which table and index seemed to differ (L4).

Both are read one after the other, and a crawl goes on meanwhile: what it delivers between both looks like a difference.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from searchcrawl import urls
from searchcrawl.index.receiver import IndexEntry, SearchIndex
from searchcrawl.store.documents import receipt_table
from searchcrawl.store.documents.receipt_table import Receipted
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease
from searchcrawl.store.urls import url_table

#: Documents that are looked at together.
_GROUP: Final = 500
_OF_NAMES: Final = frozenset(string.ascii_lowercase + string.digits + "_-")
_DIGEST_DIGITS: Final = 32


class Suspect(NamedTuple):
    """A document in which table and index seemed to differ; without a row, or without an entry of the index."""

    id: str
    url_id: int | None
    entry: IndexEntry | None


class Difference(NamedTuple):
    """A document that differs between index and table; ``kind`` is the list to which it belongs."""

    kind: str
    url: str
    id: str
    why: str


def confirm(
    database: Database, index: SearchIndex, name: str, source_id: int | None, suspects: Sequence[Suspect]
) -> Iterator[Difference]:
    """The differences of a source that are still there; without ``source_id`` the table has no rows of it.

    Raises StoreError, and as ``find_versions``.
    """
    for group in _in_groups(suspects):
        before, _ = _find_rows(database, name, source_id, group)
        versions = _find_versions(index, group)
        after, under_way = _find_rows(database, name, source_id, group)
        for suspect in group:
            row = after.get(suspect.id)
            # The row changed while the index was asked, so the answer may be older or newer than the row.
            if row == before.get(suspect.id) and suspect.id not in under_way:
                yield from _judge(name, suspect, row, versions.get(suspect.id))


def confirm_foreign(index: SearchIndex, name: str, suspects: Sequence[Suspect]) -> Iterator[Difference]:
    """Documents of a source that the project does not have, as far as they are still in the index."""
    for group in _in_groups(suspects):
        versions = _find_versions(index, group)
        for suspect in group:
            if suspect.id in versions:
                why = f"the project has no source {name!r}; {_mend_foreign(suspect, name)}"
                yield Difference("foreign", _url_of(suspect), suspect.id, why)


def _find_rows(
    database: Database, name: str, source_id: int | None, group: Sequence[Suspect]
) -> tuple[Mapping[str, Receipted], frozenset[str]]:
    """What the table has now, by document id, and the ids of what a living process is delivering or removing."""
    if source_id is None:
        return {}, frozenset()
    # Those without a receipt have a row as soon as they are on their way.
    keys = [urls.key(suspect.entry.access_url or suspect.entry.url) for suspect in group if suspect.entry is not None]
    known = [suspect.url_id for suspect in group if suspect.url_id is not None]

    def find(transaction: Transaction) -> tuple[list[Receipted], bool, bool]:
        found = {row.id for row in url_table.find_known(transaction, source_id, keys)}
        rows = receipt_table.find(transaction, sorted(found.union(known)))
        removing = receipt_table.is_removing(transaction, source_id)
        return rows, removing, lease.is_held(transaction, source_id)

    rows, removing, held = database.read(find)
    by_id = {urls.document_id(name, row.url): row for row in rows}
    # What a process left behind that is gone stays different until somebody goes on with it.
    moving = (id_ for id_, row in by_id.items() if held and (row.under_way or (removing and row.crawl_version is None)))
    return by_id, frozenset(moving)


def _find_versions(index: SearchIndex, group: Sequence[Suspect]) -> Mapping[str, int]:
    ours = [suspect.id for suspect in group if _is_ours(suspect.id)]
    # Somebody else made the others: no crawl has touched them, and an index may be unable to look for such an id.
    others = {suspect.id: suspect.entry.crawl_version for suspect in group if suspect.entry is not None}
    return {id_: version for id_, version in others.items() if not _is_ours(id_)} | dict(index.find_versions(ours))


def _is_ours(document_id: str) -> bool:
    """Whether it may be an id that ``urls.document_id`` made."""
    name, _, digest = document_id.rpartition(":")
    return _OF_NAMES.issuperset(name) and len(digest) == _DIGEST_DIGITS and _OF_NAMES.issuperset(digest)


def _judge(name: str, suspect: Suspect, row: Receipted | None, version: int | None) -> Iterator[Difference]:
    """The difference between a row and the version of the index, if there is one."""
    if row is None or row.crawl_version is None:
        if version is not None:
            why = f"the table has no receipt for it; {_mend_extra(name, suspect, row)}"
            yield Difference("extra", _url_of(suspect, row), suspect.id, why)
    elif not row.crawl_version:
        # Its receipt was lost: it may be in the index, in any version.
        return
    elif version is None:
        why = f"the table has a receipt of version {row.crawl_version}; {_mend_sent(name, row)}"
        yield Difference("missing", row.url, suspect.id, why)
    elif version != row.crawl_version:
        why = f"version {version} in the index, {row.crawl_version} in the table; {_mend_sent(name, row)}"
        yield Difference("stale", _url_of(suspect, row), suspect.id, why)
    elif suspect.entry is not None and suspect.entry.crawl_version == version and row.settled:
        checksum, of_row = suspect.entry.checksum, row.fields_digest.hex()
        if checksum != of_row:
            why = f"checksum {checksum or 'none'} in the index, {of_row} in the table; {_mend_sent(name, row)}"
            yield Difference("stale", _url_of(suspect, row), suspect.id, why)


def _mend_sent(name: str, row: Receipted) -> str:
    if row.under_way:
        return f"its delivery was cut off, to go on with it: searchcrawl flush {name}"
    return f"to send it again: searchcrawl resend {name}"


def _mend_extra(name: str, suspect: Suspect, row: Receipted | None) -> str:
    if row is not None and row.under_way:
        return _mend_sent(name, row)
    # As ``bring_together`` looks for the page.
    if suspect.entry is not None and urls.document_id(name, suspect.entry.access_url) == suspect.id:
        return f"to have its page visited, which decides: searchcrawl resend {name}, then searchcrawl crawl {name}"
    return f"to begin anew without it: searchcrawl delete {name}, then searchcrawl crawl {name}"


def _mend_foreign(suspect: Suspect, name: str) -> str:
    if _is_ours(suspect.id):
        return f"put sources/{name}.toml back, or searchcrawl delete {name}"
    return "searchcrawl did not make it: only the index itself can delete it"


def _in_groups(suspects: Sequence[Suspect]) -> Iterator[Sequence[Suspect]]:
    for start in range(0, len(suspects), _GROUP):
        yield suspects[start : start + _GROUP]


def _url_of(suspect: Suspect, row: Receipted | None = None) -> str:
    if suspect.entry is not None:
        return suspect.entry.url
    return "" if row is None else row.url
