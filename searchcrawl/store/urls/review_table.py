"""Part of the URL table: what an edit of the source file has looked at again, and the results of rewriters.

All rows are checked by the edited rules, those whose answer the cache has are processed again without a request (D9), and
others become due before their time; so do those that a clock that was wrong put off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Row, and_, case, false, func, or_, select, tuple_, update

from searchcrawl.codes import ANSWERED, REFUSALS, REFUSED, ROBOTS_UNAVAILABLE, WITH_DOCUMENT
from searchcrawl.items import ARCHIVE_ETAG, Place
from searchcrawl.rules.recrawl import LONGEST_OPENING_MS
from searchcrawl.store.documents.presence import IS_KNOWN, IS_RECORD_LOST
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.many_rows import count_rows, read_page, read_parts, select_fields, set_rows, write_parts
from searchcrawl.store.runs import lease as leases
from searchcrawl.store.runs.lease import Lease
from searchcrawl.store.schema import DOCUMENTS_WITH_URLS, URLS_WITH_DOCUMENTS, documents, sources, urls
from searchcrawl.store.statements import is_one_of, unindexed
from searchcrawl.store.states import INDEXABLE, FetchState
from searchcrawl.store.urls import url_classes
from searchcrawl.store.urls.url_table import DUE_BY_TIME

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
IN_ARCHIVE: Final = func.coalesce(documents.c.etag.startswith(ARCHIVE_ETAG, autoescape=True), false())


def load_rows_after(transaction: Transaction, source_id: int, after: int, last: int) -> list[Reviewed]:
    """The next rows of a source by rising id up to ``last``, at most PAGE_ROWS."""
    page = (
        select(*(urls.c[name] for name in _OF_PAGE))
        .where(unindexed(urls.c.source_id) == source_id, urls.c.id > after, urls.c.id <= last)
        .order_by(urls.c.id)
        .limit(PAGE_ROWS)
        .subquery("page")
    )
    is_known = func.coalesce(IS_KNOWN, false())
    query = (
        select_fields(Reviewed, page, referrer=_referrers.c.url, is_known=is_known, in_archive=IN_ARCHIVE)
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
    set_rows(
        transaction, urls.c.id, {row_id: {"code": int(code), "rule": rule} for row_id, (code, rule) in rules.items()}
    )


def set_found_as(transaction: Transaction, found: Mapping[int, tuple[str | None, str | None]]) -> None:
    """Sets the original URL and the display URL of rows to which another link leads, by row id."""
    rows = {row_id: {"found_as": found_as, "display_url": display} for row_id, (found_as, display) in found.items()}
    set_rows(transaction, urls.c.id, rows)


def note_found_as(transaction: Transaction, found: Mapping[int, str | None]) -> None:
    """Sets the original URL alone, by row id."""
    set_rows(transaction, urls.c.id, {row_id: {"found_as": found_as} for row_id, found_as in found.items()})


def find_displays(transaction: Transaction, source_id: int, keys: Sequence[int]) -> Iterator[Row[Any]]:
    """Id, key, URL, and the display URL that a rewriter set, of the rows of ``keys`` that are there."""
    query = select(urls.c.id, urls.c.key, urls.c.url, urls.c.display_url).where(urls.c.source_id == source_id)
    return read_parts(transaction, query, urls.c.key, keys, are_keys=True)


def set_displays(transaction: Transaction, displays: Mapping[int, str | None]) -> None:
    """Sets the display URL of rows by id."""
    set_rows(transaction, urls.c.id, {row_id: {"display_url": display} for row_id, display in displays.items()})


_READ_WELL: Final = urls.c.code.in_(sorted(WITH_DOCUMENT))
_SETTLED: Final = urls.c.fetch_state == int(FetchState.SETTLED)
_TODO: Final = urls.c.fetch_state == int(FetchState.TODO)


class StoredAnswer(NamedTuple):
    """A row, the redirects of its last visit as JSON, where its record is, and its bytes.

    ``redirected``: the page came from another URL, also where the row has been refused since, and does not say how.
    """

    url_id: int
    redirects: str | None
    segment: int
    record_offset: int
    response_bytes: int
    fields_bytes: int
    content_length: int
    redirected: bool = False

    @property
    def place(self) -> Place:
        """Where its record is."""
        return Place(self.segment, self.record_offset, self.response_bytes, self.fields_bytes)


_ANSWERS: Final = select_fields(
    StoredAnswer,
    urls,
    documents,
    url_id=urls.c.id,
    redirected=documents.c.answered_key.is_not(None),
).select_from(URLS_WITH_DOCUMENTS)


def find_answers(
    transaction: Transaction, source_id: int, *, after: int, limit: int, horizon_ms: int
) -> list[StoredAnswer]:
    """The next rows by rising id that are due in this run, whose last visit was good, and whose record is there.

    Also those that were refused, and that edited rules allow again. Rows whose document is lost, or differs from what the
    index has, are left to a visit.
    """
    query = _ANSWERS.where(_has_answer(horizon_ms))
    page = read_page(transaction, query, source_id, by=urls.c.id, after=after, limit=limit)
    return [StoredAnswer._make(row) for row in page]


def _has_answer(horizon_ms: int) -> ColumnElement[bool]:
    # A process that died may have claimed it. One that was reopened for a visit (``recrawl``) has no moment.
    claimed = and_(_READ_WELL, urls.c.due_ms > 0)
    # Where redirects led to what was refused, they are none of the record, and may lead to another page now.
    refused = and_(urls.c.code.in_(sorted(REFUSED)), urls.c.redirects.is_(None))
    again = and_(_TODO, or_(claimed, refused))
    due = and_(_SETTLED, urls.c.due_ms <= horizon_ms, _READ_WELL)
    has_record = and_(documents.c.segment.is_not(None), ~IS_RECORD_LOST)
    return and_(or_(again, due), has_record)


def count_answers(transaction: Transaction, source_id: int, *, horizon_ms: int) -> tuple[int, int]:
    """How many rows ``find_answers`` would find in all, and how many a run would visit."""
    due = or_(urls.c.fetch_state != int(FetchState.SETTLED), urls.c.due_ms <= horizon_ms)
    stored = func.sum(case((_has_answer(horizon_ms), 1), else_=0))
    query = select(func.coalesce(stored, 0), func.count()).select_from(URLS_WITH_DOCUMENTS)
    row = transaction.execute(query.where(unindexed(urls.c.source_id) == source_id, due)).one()
    return int(row[0]), int(row[1])


def count_left_to_visit(
    transaction: Transaction, source_id: int, *, horizon_ms: int, codes: Collection[int] | None
) -> int:
    """How many rows have to be visited: those to do, and those due whose last code is one of ``codes`` (None: all)."""
    due = and_(_SETTLED, urls.c.due_ms <= horizon_ms)
    if codes is not None:
        due = and_(due, urls.c.code.in_(sorted(codes)))
    waits = urls.c.fetch_state != int(FetchState.SETTLED)
    return count_rows(transaction, urls, unindexed(urls.c.source_id) == source_id, or_(waits, due))


def count_undecided(transaction: Transaction, source_id: int) -> int:
    """How many documents of the index are not looked at again because the last visit of their URL failed.

    An edit decides about them once a visit brings their page.
    """
    failed = or_(urls.c.code.not_in(sorted(ANSWERED | REFUSALS | WITH_DOCUMENT)), urls.c.rule == ROBOTS_UNAVAILABLE)
    here = unindexed(urls.c.source_id) == source_id, _SETTLED, failed
    shown = documents.c.indexed_version.is_not(None), is_one_of("documents.state", INDEXABLE)
    return count_rows(transaction, DOCUMENTS_WITH_URLS, *here, *shown)


def put_off(transaction: Transaction, source_id: int, *, after: int, horizon_ms: int) -> int | None:
    """Leaves the rows that are still due to the next run, a page of them: an edit has no effect on them.

    Documents of theirs are processed again at their next visit, whatever bytes it brings. Returns the last id, None at the
    end.
    """
    query = select(urls.c.id).where(_SETTLED, urls.c.due_ms <= horizon_ms)
    page = read_page(transaction, query, source_id, by=urls.c.id, after=after, limit=PAGE_ROWS)
    found = [row.id for row in page]
    with url_classes.watch(transaction, found):
        write_parts(transaction, update(urls).values(due_ms=horizon_ms + 1), urls.c.id, found)
    write_parts(transaction, update(documents).values(unavailable_ms=0), documents.c.url_id, found)
    return found[-1] if found else None


class Hastening(NamedTuple):
    """Rows that are to be made due since the source file was edited: those above ``after``, unless visited since.

    The edit came at ``since_ms``, after or within the run ``run_id``.
    """

    after: int
    run_id: int
    since_ms: int


def find_hastening(transaction: Transaction, source: int) -> Hastening | None:
    """Which rows are still to be made due; None: none."""
    columns = (sources.c.hasten_after, sources.c.hasten_run, sources.c.hasten_since_ms)
    row = transaction.execute(select(*columns).where(sources.c.id == source)).one_or_none()
    return None if row is None or row.hasten_after is None else Hastening._make(row)


def begin_hastening(transaction: Transaction, lease: Lease, *, run_id: int, now_ms: int) -> None:
    """Notes that all rows are to be made due: the source file was edited since, or within, the run ``run_id``.

    Renews the lease.
    """
    leases.renew(transaction, lease)
    values = {"hasten_after": 0, "hasten_run": run_id, "hasten_since_ms": now_ms}
    transaction.execute(update(sources).where(sources.c.id == lease.source_id).values(values))


def hasten(
    transaction: Transaction, source_id: int, hastening: Hastening, *, last: int, horizon_ms: int, now_ms: int
) -> None:
    """Makes settled rows up to the id ``last`` due at the horizon of a run that are due later, unless visited since the edit.

    A clock that was wrong in between hides none of them.
    """
    fetched = urls.c.last_fetched_ms
    before = or_(urls.c.run_id.is_(None), urls.c.run_id < hastening.run_id)
    earlier = or_(fetched.is_(None), ~fetched.between(hastening.since_ms, now_ms))
    later = urls.c.id <= last, urls.c.due_ms > horizon_ms
    meant = or_(before, and_(urls.c.run_id == hastening.run_id, earlier))
    _hasten(transaction, source_id, horizon_ms, *later, meant, after=hastening.after)


def hasten_ahead(transaction: Transaction, lease: Lease, *, after: int, horizon_ms: int, now_ms: int) -> int | None:
    """Makes rows due now that were visited later than now, by a clock that was ahead; a page of those above ``after``.

    So are failed ones that wait for the end of ``horizon_ms``, that of the run before. Renews the lease. Returns the last
    id, None at the end.
    """
    leases.renew(transaction, lease)
    put_off = and_(urls.c.failed_runs > 0, urls.c.due_ms > horizon_ms)
    ahead = or_(urls.c.last_fetched_ms > now_ms, put_off)
    found = _hasten(transaction, lease.source_id, now_ms, urls.c.due_ms > now_ms, ahead, after=after)
    return found[-1] if found else None


def hasten_late(database: Database, lease: Lease, *, longest_ms: int, now_ms: int) -> None:
    """Makes rows due earlier that wait longer than a page may: ``lifecycle`` was edited since their visit.

    Pages that fail wait longer, unless the clock was ahead at their visit, and so do those that are not to be requested yet. Each transaction takes a page of rows, and renews the lease.
    """
    after: tuple[int, int] | None = (now_ms + longest_ms + 1, 0)
    while after is not None:
        after = database.write(_hasten_late, lease=lease, after=after, longest_ms=longest_ms, now_ms=now_ms)


def _hasten_late(
    transaction: Transaction, *, lease: Lease, after: tuple[int, int], longest_ms: int, now_ms: int
) -> tuple[int, int] | None:
    leases.renew(transaction, lease)
    place = urls.c.due_ms, urls.c.id
    # Both: the index knows the moment alone.
    late = (DUE_BY_TIME, urls.c.source_id == lease.source_id, urls.c.due_ms >= after[0], tuple_(*place) > after)
    opens = or_(urls.c.opens_ms.is_(None), urls.c.opens_ms > now_ms + LONGEST_OPENING_MS)
    meant = and_(or_(urls.c.failed_runs == 0, urls.c.last_fetched_ms > now_ms), opens)
    query = select(*place).where(*late, meant).order_by(*place).limit(PAGE_ROWS)
    places = [(row.due_ms, row.id) for row in transaction.execute(query)]
    found = [url_id for _, url_id in places]
    visited_ms = case((urls.c.last_fetched_ms <= now_ms, urls.c.last_fetched_ms), else_=0)
    with url_classes.watch(transaction, found):
        write_parts(transaction, update(urls).values(due_ms=visited_ms + longest_ms), urls.c.id, found)
    return places[-1] if len(places) == PAGE_ROWS else None


def _hasten(
    transaction: Transaction, source_id: int, due_ms: int, *conditions: ColumnElement[bool], after: int
) -> list[int]:
    """Makes settled rows due; returns their ids, a page of them at most."""
    query = select(urls.c.id).where(_SETTLED, *conditions)
    page = read_page(transaction, query, source_id, by=urls.c.id, after=after, limit=PAGE_ROWS)
    found = [row.id for row in page]
    with url_classes.watch(transaction, found):
        write_parts(transaction, update(urls).values(due_ms=due_ms), urls.c.id, found)
    return found
