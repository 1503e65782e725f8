"""Part of the URL table: the redirects that lead to a row and from it, and those that lead to a URL without one."""

from __future__ import annotations

from typing import Final, NamedTuple

import orjson
from sqlalchemy import ColumnElement, FromClause, and_, or_, select

from searchcrawl import urls as identity
from searchcrawl.codes import REDIRECTS
from searchcrawl.rules.redirects import write_target
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.statements import unindexed
from searchcrawl.store.urls import outlink_table

#: So many URLs that redirect to another are named.
_MOST_LISTED: Final = 10
_CODES: Final = sorted(REDIRECTS)


def is_redirecting(rows: FromClause) -> ColumnElement[bool]:
    """Whether a row led to another one at its last visit.

    With 963, or where a rule refuses the target, it leads nowhere: the links that it has are those of an earlier page.
    """
    return and_(rows.c.code.in_(_CODES), rows.c.rule.is_(None))


def find_redirects_before(transaction: Transaction, url_id: int, *, limit: int) -> list[str]:
    """The URLs of the chain of redirects that leads to a row, the nearest first, at most ``limit``."""
    found: list[str] = []
    referrer = urls.alias("referrer")
    while len(found) < limit:
        query = (
            select(referrer.c.id, referrer.c.url)
            .select_from(urls.join(referrer, referrer.c.id == urls.c.referrer_id))
            .where(urls.c.id == url_id, is_redirecting(referrer))
        )
        row = transaction.execute(query).one_or_none()
        if row is None or row.url in found or not leads_to(transaction, row.id, url_id):
            break
        url_id = row.id
        found.append(row.url)
    return found


def leads_to(transaction: Transaction, redirecting_id: int, url_id: int) -> bool:
    """Whether the row that redirects does so to this one: it may have found it as a page, before."""
    return outlink_table.load(transaction, [redirecting_id]).get(redirecting_id) == [url_id]


def find_target(transaction: Transaction, source_id: int, url: str) -> str | None:
    """The URL to which the row of ``url`` redirected at its last visit; None where it did not, or has no row."""
    query = select(urls.c.id).where(urls.c.source_id == source_id, urls.c.key == identity.key(url))
    url_id = transaction.execute(query.where(is_redirecting(urls))).scalar_one_or_none()
    targets = [] if url_id is None else outlink_table.load(transaction, [url_id]).get(url_id, [])
    if len(targets) != 1:
        return None
    found: str | None = transaction.execute(select(urls.c.url).where(urls.c.id == targets[0])).scalar_one_or_none()
    return found


class RedirectingUrl(NamedTuple):
    """A row whose document came from another URL, to which redirects led, with the code of its last visit."""

    url: str
    code: int
    in_index: bool


def find_redirecting(transaction: Transaction, source_id: int, url: str) -> list[RedirectingUrl]:
    """The rows whose documents came from ``url``, or over it, by redirects that were followed; at most ten, indexed first."""
    found = _list_redirecting(transaction, source_id, documents.c.answered_key == identity.key(url))
    if found:
        return found
    # Rows have the URLs that answered with a redirect, as JSON.
    hop = f'"url":{orjson.dumps(url).decode()}'
    passed = documents.c.answered_key.is_not(None), urls.c.redirects.contains(hop, autoescape=True), urls.c.url != url
    return _list_redirecting(transaction, source_id, *passed)


def find_led_away(transaction: Transaction, source_id: int, url: str) -> list[RedirectingUrl]:
    """The rows whose last visit was led to ``url``, and brought no page of it: a rule refuses it, or it failed; at most ten."""
    error, in_index = urls.c.error, documents.c.indexed_version.is_not(None)
    failed = and_(urls.c.redirects.is_not(None), error.endswith(f": {url}", autoescape=True))
    query = (
        select(urls.c.url, urls.c.code, in_index)
        .outerjoin(documents, documents.c.url_id == urls.c.id)
        .where(unindexed(urls.c.source_id) == source_id, urls.c.url != url, or_(error == write_target(url), failed))
        .order_by(urls.c.id)
        .limit(_MOST_LISTED)
    )
    return [RedirectingUrl(row[0], row[1], bool(row[2])) for row in transaction.execute(query)]


def _list_redirecting(
    transaction: Transaction, source_id: int, *conditions: ColumnElement[bool]
) -> list[RedirectingUrl]:
    in_index = documents.c.indexed_version.is_not(None)
    query = (
        select(urls.c.url, urls.c.code, in_index)
        .join(documents, documents.c.url_id == urls.c.id)
        .where(documents.c.source_id == source_id, *conditions)
        .order_by(in_index.desc(), urls.c.id)
        .limit(_MOST_LISTED)
    )
    return [RedirectingUrl(row[0], row[1], bool(row[2])) for row in transaction.execute(query)]
