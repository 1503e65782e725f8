"""The containers of kinds that are listed, folders and tables, and what they said of their rows (``listing.model``).

They are rows of ``sitemaps``: what lists URLs, and is none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Text, bindparam, func, or_, select, update

from searchcrawl import urls as identities
from searchcrawl.codes import SUCCESS, UNREACHABLE, WITH_DOCUMENT, Code
from searchcrawl.listing.model import ListingEnd
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import read_parts, select_fields, write_parts, write_rows
from searchcrawl.store.schema import sitemaps, urls
from searchcrawl.store.statements import unindexed

#: The container of all that a lister begins with.
ROOTS: Final = ""
#: Rows of a container that are read at once.
PAGE_ROWS: Final = 5000
#: Of containers of which nothing is known.
_UNSAID: Final = frozenset({int(Code.NOT_FETCHED), int(Code.NO_LONGER_LISTED)})
_GOOD: Final = sorted({0, *SUCCESS, int(Code.OUTSIDE_BOUNDARY), int(Code.NO_LONGER_LISTED)})


class ListedRow(NamedTuple):
    """What is known of a row: which container lists it, in which version, and with which facts (``urls.version``)."""

    id: int
    key: int
    sitemap_id: int | None
    version: int | None
    facts: int | None
    fetch_state: int
    code: int
    rule: str | None


class Listed(NamedTuple):
    """What a container says of a row: hashes of its token and of that of its facts, None without any."""

    version: int
    facts: int | None


_LISTED: Final = select_fields(ListedRow, urls)
#: As ``_make``, in half the time: a run reads all rows of its source.
_make_row: Final = partial(tuple.__new__, ListedRow)
#: Fewer rows are found by their keys at once.
_FEW: Final = 100
#: Rows are read with those between them where these are not more than so many times as many.
_SPREAD: Final = 2


def find_mark(transaction: Transaction, source_id: int, url: str) -> str | None:
    """What its lister noted of a container when it was read last."""
    here = sitemaps.c.source_id == source_id, sitemaps.c.key == identities.key(url)
    return transaction.execute(select(sitemaps.c.mark).where(*here)).scalar()


def has_out_of_reach(transaction: Transaction, source_id: int) -> bool:
    """Whether the last visit of something that is listed ended because its source was out of reach."""
    here = urls.c.source_id == source_id, urls.c.sitemap_id.is_not(None), urls.c.code.in_(sorted(UNREACHABLE))
    return transaction.execute(select(urls.c.id).where(*here).limit(1)).first() is not None


def has_entries(transaction: Transaction, source_id: int, url: str) -> bool:
    """Whether rows are known that a container lists, or one below it."""
    here = sitemaps.c.source_id == source_id, sitemaps.c.key == identities.key(url)
    above = list(transaction.execute(select(sitemaps.c.id).where(*here)).scalars())
    while above:
        query = select(urls.c.id).where(urls.c.version.is_not(None)).limit(1)
        if any(True for _ in read_parts(transaction, query, urls.c.sitemap_id, above)):
            return True
        above = [row.id for row in read_parts(transaction, select(sitemaps.c.id), sitemaps.c.parent_id, above)]
    return False


def find_rows(transaction: Transaction, source_id: int, keys: Sequence[int]) -> dict[int, ListedRow]:
    """The rows of things, by the keys of their identities; perhaps with others.

    What is listed together has mostly come into the table together. Such rows are read from the first to the last, in a third of the
    time: each key by itself is somewhere else in its index.
    """
    if len(keys) < _FEW:
        return _find_by_key(transaction, source_id, keys)
    ends = _find_by_key(transaction, source_id, (keys[0], keys[-1]))
    first, last = (min(ends.values()).id, max(ends.values()).id) if ends else (0, 0)
    if last - first not in range(1, _SPREAD * len(keys)):
        return _find_by_key(transaction, source_id, keys)
    found = _read(transaction, unindexed(urls.c.source_id) == source_id, urls.c.id.between(first, last))
    return found | _find_by_key(transaction, source_id, [key for key in keys if key not in found])


def _find_by_key(transaction: Transaction, source_id: int, keys: Sequence[int]) -> dict[int, ListedRow]:
    if not keys:
        return {}
    return _read(transaction, urls.c.source_id == source_id, dialect_of(transaction).is_among(urls.c.key, keys))


def _read(transaction: Transaction, *here: ColumnElement[bool]) -> dict[int, ListedRow]:
    return {row[1]: row for row in map(_make_row, transaction.execute(_LISTED.where(*here)).all())}


_SET_LISTED: Final = (
    update(urls)
    .where(urls.c.id == bindparam("row_id"))
    .values(sitemap_id=bindparam("new_container"), version=bindparam("new_version"), facts=bindparam("new_facts"))
)


def set_listed(transaction: Transaction, container_id: int, listed: Mapping[int, Listed]) -> None:
    """Notes that a container lists rows, by id with what it says of each."""
    rows = [
        {"row_id": row, "new_container": container_id, "new_version": found.version, "new_facts": found.facts}
        for row, found in listed.items()
    ]
    write_rows(transaction, _SET_LISTED, rows)


def drop_versions(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Notes that nothing lists rows any more."""
    write_parts(transaction, update(urls).values(version=None), urls.c.id, url_ids)


#: A row that is listed; or that is not, and was there all the same when it was looked for.
_MAY_BE_GONE: Final = or_(urls.c.version.is_not(None), urls.c.code.in_(sorted(WITH_DOCUMENT)))


def find_of_container(transaction: Transaction, container_id: int, *, after: int) -> list[int]:
    """The next rows of a container by rising id, that it listed or that may still be there."""
    here = urls.c.sitemap_id == container_id, urls.c.id > after
    query = select(urls.c.id).where(*here, _MAY_BE_GONE).order_by(urls.c.id).limit(PAGE_ROWS)
    return list(transaction.execute(query).scalars())


class Container(NamedTuple):
    """A container that is known, the one in which it is, and how its last reading ended."""

    id: int
    parent_id: int | None
    code: int


_CONTAINERS: Final = select(sitemaps.c.key, sitemaps.c.id, sitemaps.c.parent_id, sitemaps.c.code)


def find_containers(transaction: Transaction, source_id: int, wanted: Collection[str]) -> dict[str, Container]:
    """Those of the containers that are known, by URL."""
    keys = {identities.key(url): url for url in wanted}
    query = _CONTAINERS.where(sitemaps.c.source_id == source_id)
    rows = read_parts(transaction, query, sitemaps.c.key, list(keys), are_keys=True)
    return {keys[key]: Container(*found) for key, *found in rows}


def count_rows(transaction: Transaction, container_ids: Collection[int]) -> dict[int, int]:
    """How many rows each container has, also those that left it and are still known."""
    query = select(urls.c.sitemap_id, func.count()).where(urls.c.sitemap_id.is_not(None)).group_by(urls.c.sitemap_id)
    return {row[0]: row[1] for row in read_parts(transaction, query, urls.c.sitemap_id, container_ids)}


def is_root(transaction: Transaction, container_id: int) -> bool:
    """Whether a container is in no other one."""
    return transaction.execute(select(sitemaps.c.parent_id).where(sitemaps.c.id == container_id)).scalar() is None


def group_children(transaction: Transaction, container_ids: Collection[int]) -> dict[int, list[int]]:
    """The containers in each of others that were not gone when these were read last."""
    query = select(sitemaps.c.id, sitemaps.c.parent_id).where(sitemaps.c.code != int(Code.NO_LONGER_LISTED))
    found = defaultdict[int, list[int]](list)
    for row in read_parts(transaction, query, sitemaps.c.parent_id, container_ids):
        found[row.parent_id].append(row.id)
    return found


def find_children(transaction: Transaction, container_ids: Collection[int]) -> list[int]:
    """The containers in others that were not gone when these were read last."""
    return [child for found in group_children(transaction, container_ids).values() for child in found]


_END: Final = (
    update(sitemaps)
    .where(sitemaps.c.id == bindparam("row_id"))
    .values(
        {name: bindparam(f"new_{name}") for name in ("code", "error", "run_id", "read_ms")}
        | {"mark": func.coalesce(bindparam("new_mark", type_=Text), sitemaps.c.mark)}
    )
)


def end(transaction: Transaction, readings: Mapping[int, ListingEnd], *, run_id: int, now_ms: int) -> None:
    """Writes how the readings of containers ended, by id; each keeps its mark where that says nothing of one."""
    rows = [
        {
            "row_id": container_id,
            "new_code": reading.code,
            "new_error": reading.error,
            "new_run_id": run_id,
            "new_read_ms": now_ms,
            "new_mark": reading.mark,
        }
        for container_id, reading in readings.items()
    ]
    write_rows(transaction, _END, rows)


def note_gone(transaction: Transaction, container_ids: Sequence[int], *, run_id: int) -> None:
    """Notes that containers are not listed any more; what their listers noted is forgotten."""
    values = {"code": int(Code.NO_LONGER_LISTED), "error": None, "mark": None, "run_id": run_id}
    write_parts(transaction, update(sitemaps).values(values), sitemaps.c.id, container_ids)


def note_back(transaction: Transaction, container_ids: Sequence[int]) -> None:
    """Notes that containers which were gone are listed again, before they are read: what is found in them may go with them."""
    write_parts(transaction, update(sitemaps).values(code=int(Code.NOT_FETCHED)), sitemaps.c.id, container_ids)


class FailedListing(NamedTuple):
    """A container that could not be read when it was read last, or how it was read."""

    url: str
    code: int
    error: str | None


def find_above(transaction: Transaction, source_id: int, url: str) -> FailedListing | None:
    """The nearest container that a thing is in and that could not be read, or is left out, by what its lister said last.

    A container that is asked for itself comes with what its lister said, whatever that is.
    """
    itself = f"{url.rstrip('/')}/"
    places = [place for place, sign in enumerate(itself) if sign == "/" and place > itself.find("://") + 2]
    keys = [identities.key(itself[: place + 1]) for place in places]
    query = select(*(sitemaps.c[name] for name in FailedListing._fields)).where(sitemaps.c.source_id == source_id)
    found = [
        FailedListing._make(row)
        for row in read_parts(transaction, query, sitemaps.c.key, keys)
        if row.code not in _UNSAID and (row.code not in SUCCESS or row.url == itself)
    ]
    return max(found, key=lambda one: len(one.url), default=None)


def find_failures(transaction: Transaction, source_id: int, *, limit: int) -> list[FailedListing]:
    """The containers of a source that could not be read, the first of them."""
    query = select(*(sitemaps.c[name] for name in FailedListing._fields))
    here = sitemaps.c.source_id == source_id, sitemaps.c.code.not_in(_GOOD)
    return [
        FailedListing._make(row) for row in transaction.execute(query.where(*here).order_by(sitemaps.c.id).limit(limit))
    ]


def count(transaction: Transaction, source_id: int) -> tuple[int, int]:
    """How many containers of a source are listed, and how many of them could not be read."""
    is_listed = sitemaps.c.code != int(Code.NO_LONGER_LISTED), sitemaps.c.url != ROOTS
    here = sitemaps.c.source_id == source_id, *is_listed
    failed = func.count().filter(sitemaps.c.code.not_in(_GOOD))
    row = transaction.execute(select(func.count(), failed).select_from(sitemaps).where(*here)).one()
    return int(row[0]), int(row[1])
