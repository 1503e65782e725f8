"""Part of the URL table: all rows of a source, when its file was edited; and the results of rewriters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import bindparam, false, func, select, update

from searchcrawl.items import ARCHIVE_ETAG
from searchcrawl.store.documents.presence import IS_KNOWN
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.schema import documents, urls
from searchcrawl.store.statements import split, unindexed

#: Rows that are read at once; a source may have millions.
PAGE_ROWS: Final = 1000

_referrers = urls.alias("referrers")


class Reviewed(NamedTuple):
    """A row to be checked by edited rules; ``found_as`` is the URL before a rewriter changed it, if one did.

    ``is_known`` tells whether it has a document that belongs in the index, or is there; ``in_archive`` that its last good
    body was that of a file in an archive.
    """

    id: int
    url: str
    depth: int
    fetch_state: int
    code: int
    rule: str | None
    referrer_id: int | None
    referrer: str | None
    found_as: str | None
    is_known: bool
    in_archive: bool


_OF_PAGE: Final = ("id", "url", "depth", "fetch_state", "code", "rule", "referrer_id", "found_as")
#: Whether the last good body of a row was that of a file in an archive; of rows joined with their documents.
IN_ARCHIVE: Final = func.coalesce(documents.c.etag.startswith(ARCHIVE_ETAG, autoescape=True), false()).label(
    "in_archive"
)


def load_rows_after(transaction: Transaction, source_id: int, after: int, last: int) -> list[Reviewed]:
    """The next rows of a source by rising id up to ``last``, at most PAGE_ROWS."""
    page = (
        select(*(urls.c[name] for name in _OF_PAGE))
        .where(unindexed(urls.c.source_id) == source_id, urls.c.id > after, urls.c.id <= last)
        .order_by(urls.c.id)
        .limit(PAGE_ROWS)
        .subquery("page")
    )

    is_known = func.coalesce(IS_KNOWN, false()).label("is_known")
    of_others = {"referrer": _referrers.c.url, "is_known": is_known, "in_archive": IN_ARCHIVE}
    query = (
        select(*(of_others[name] if name in of_others else page.c[name] for name in Reviewed._fields))
        .select_from(
            page.outerjoin(_referrers, _referrers.c.id == page.c.referrer_id).outerjoin(
                documents, documents.c.url_id == page.c.id
            )
        )
        .order_by(page.c.id)
    )
    return [Reviewed._make(row) for row in transaction.execute(query)]


def find_page_end(transaction: Transaction, source_id: int, after: int, last: int) -> tuple[int | None, int]:
    """The last id of the next page of rows of a source by rising id up to ``last``, and their number; None, 0 without any."""
    page = select(urls.c.id).where(unindexed(urls.c.source_id) == source_id, urls.c.id > after, urls.c.id <= last)
    ids = page.order_by(urls.c.id).limit(PAGE_ROWS).subquery("ids")
    end, number = transaction.execute(select(func.max(ids.c.id), func.count())).one()
    return end, number


def set_rules(transaction: Transaction, rules: Mapping[int, tuple[int, str]]) -> None:
    """Sets code and rule of rows that stay refused, by row id."""
    if rules:
        statement = update(urls).where(urls.c.id == bindparam("row_id"))
        transaction.execute(
            statement.values(code=bindparam("new_code"), rule=bindparam("new_rule")),
            [{"row_id": row_id, "new_code": int(code), "new_rule": rule} for row_id, (code, rule) in rules.items()],
        )


def set_found_as(transaction: Transaction, found: Mapping[int, tuple[str | None, str | None]]) -> None:
    """Sets the original URL and the display URL of rows to which another link leads, by row id."""
    if found:
        statement = update(urls).where(urls.c.id == bindparam("row_id"))
        transaction.execute(
            statement.values(found_as=bindparam("new_found_as"), display_url=bindparam("new_display")),
            [
                {"row_id": row_id, "new_found_as": found_as, "new_display": display}
                for row_id, (found_as, display) in found.items()
            ],
        )


def note_found_as(transaction: Transaction, found: Mapping[int, str | None]) -> None:
    """Sets the original URL alone, by row id."""
    if found:
        statement = update(urls).where(urls.c.id == bindparam("row_id")).values(found_as=bindparam("new_found_as"))
        rows = [{"row_id": row_id, "new_found_as": found_as} for row_id, found_as in found.items()]
        transaction.execute(statement, rows)


class DisplayRow(NamedTuple):
    """A row and the display URL that a rewriter set for it."""

    id: int
    key: int
    url: str
    display_url: str | None


def find_displays(transaction: Transaction, source_id: int, keys: Sequence[int]) -> list[DisplayRow]:
    """The rows of ``keys`` that are there."""
    found: list[DisplayRow] = []
    for part in split(keys):
        query = select(urls.c.id, urls.c.key, urls.c.url, urls.c.display_url).where(
            urls.c.source_id == source_id, dialect_of(transaction).is_among(urls.c.key, part)
        )
        found.extend(DisplayRow._make(row) for row in transaction.execute(query))
    return found


def set_displays(transaction: Transaction, displays: Mapping[int, str | None]) -> None:
    """Sets the display URL of rows by id."""
    if displays:
        transaction.execute(
            update(urls).where(urls.c.id == bindparam("row_id")).values(display_url=bindparam("new_display")),
            [{"row_id": row_id, "new_display": display} for row_id, display in displays.items()],
        )
