"""Part of the URL table: how many links away from a start page the rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, select, update

from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import urls
from searchcrawl.store.statements import split


class UrlPlace(NamedTuple):
    """A row: its URL, its depth, and how its last visit ended."""

    url: str
    depth: int
    code: int
    rule: str | None
    fetch_state: int


def find_places(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, UrlPlace]:
    """Rows by id."""
    found: dict[int, UrlPlace] = {}
    for part in split(url_ids):
        query = select(urls.c.id, *(urls.c[name] for name in UrlPlace._fields)).where(urls.c.id.in_(part))
        found.update({row[0]: UrlPlace._make(row[1:]) for row in transaction.execute(query)})
    return found


def find_depths(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, int]:
    """The depth of rows by id."""
    found: dict[int, int] = {}
    for part in split(url_ids):
        query = select(urls.c.id, urls.c.depth).where(urls.c.id.in_(part))
        found.update({row[0]: row[1] for row in transaction.execute(query)})
    return found


def lower_depths(transaction: Transaction, depths: Mapping[int, int]) -> None:
    """Sets the depth of rows by id."""
    if depths:
        statement = update(urls).where(urls.c.id == bindparam("row_id")).values(depth=bindparam("new_depth"))
        transaction.execute(statement, [{"row_id": row_id, "new_depth": depth} for row_id, depth in depths.items()])
