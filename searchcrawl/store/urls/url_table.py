"""The URL table, which is the queue: rows are added, claimed and settled here. Depths are links from a start page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from searchcrawl.codes import WITH_DOCUMENT, Code
from searchcrawl.items import ARCHIVE_ETAG, CANONICAL_ETAG, Claim
from searchcrawl.rules import lifecycle
from searchcrawl.store.documents.presence import is_known
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import Dialect, dialect_of
from searchcrawl.store.events import StateEvent
from searchcrawl.store.many_rows import read_parts, select_fields, set_rows, write_parts, write_rows
from searchcrawl.store.schema import URLS_WITH_DOCUMENTS, documents, urls
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.states import AT_HAND, FetchState
from searchcrawl.store.urls import url_classes
from searchcrawl.store.urls.fetch_events import (
    CLAIMED,
    CLAIMED_ALONE,
    NOT_NOW,
    PUT_OFF,
    REFUSED,
    REFUSED_LATER,
    RELEASED,
    REOPENED,
    VISITED,
    choose_found,
)

# No IN: its list cannot be expanded for many rows at once.
_ENDED_WELL: Final = or_(*(urls.c.code == code for code in sorted(WITH_DOCUMENT)))
# The literals let the planner use the partial indexes.
TODO: Final = text(f"urls.fetch_state = {FetchState.TODO}")
DUE: Final = text(f"urls.fetch_state = {FetchState.SETTLED} AND urls.due_ms IS NOT NULL")
#: The same by another condition, that of the index by time: for the rows of one host a planner must not take that index.
DUE_BY_TIME: Final = text(f"urls.fetch_state = {FetchState.SETTLED} AND urls.due_ms IS NOT NULL AND urls.source_id > 0")
#: No row to do waits as long as this: if one would, the clock was ahead when it was to be tried again (X-S7).
LONGEST_WAIT_MS: Final = 3_600_000


class KnownUrl(NamedTuple):
    """What admission needs to know of a row."""

    id: int
    key: int
    depth: int
    fetch_state: int
    code: int
    rule: str | None
    found_as: str | None


_KNOWN: Final = select_fields(KnownUrl, urls)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUrl:
    """A row to be added; with a ``code`` other than 0 it is settled at once, with its ``rule`` and ``error``.

    ``found_as`` and ``display_url`` come from a rewriter (``items.Link``). With a ``lap`` it is visited after all others.
    """

    key: int
    url: str
    host_id: int
    depth: int
    referrer_id: int | None = None
    code: int = 0
    rule: str | None = None
    error: str | None = None
    found_as: str | None = None
    display_url: str | None = None
    lap: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The end of a visit. With ``due_ms`` None the row is not visited again by itself; with TODO it is tried again.

    With ``keep_rule`` the row keeps its rule if it keeps its code; without ``interval_ms`` it keeps its interval.
    ``unread`` is as ``rules.lifecycle`` dumps it, ``lacks`` what its rendered page lacked.
    """

    url_id: int
    fetch_state: FetchState = FetchState.SETTLED
    code: int
    rule: str | None = None
    keep_rule: bool = False
    error: str | None = None
    attempts: int = 0
    failed_runs: int = 0
    failures: str | None = None
    due_ms: int | None
    fetched_ms: int | None
    redirects: str | None = None
    interval_ms: int | None = None
    unread: str | None = None
    lacks: str | None = None


def find_known(transaction: Transaction, source_id: int, keys: Sequence[int]) -> list[KnownUrl]:
    """The known rows among ``keys``."""
    rows = read_parts(transaction, _KNOWN.where(urls.c.source_id == source_id), urls.c.key, keys, are_keys=True)
    return [KnownUrl._make(row) for row in rows]


def add(transaction: Transaction, source_id: int, rows: Sequence[NewUrl], seen_ms: int) -> dict[int, int]:
    """Inserts rows that are new; returns their ids by key. The caller holds the write lock."""
    if not rows:
        return {}
    run_id = url_classes.find_run(transaction)
    refused = sum(1 for row in rows if row.code)
    url_classes.note_new(transaction, to_fetch=len(rows) - refused, rejected=refused)
    values = [
        {
            "source_id": source_id,
            **{name: getattr(row, name) for name in NewUrl.__slots__},
            "fetch_state": choose_found(is_refused=bool(row.code)),
            "due_ms": None if row.code else 0,
            "first_seen_ms": seen_ms,
            "run_id": run_id if row.code else None,
        }
        for row in rows
    ]
    result = transaction.execute(insert(urls).returning(urls.c.id, urls.c.key), values)
    return {key: url_id for url_id, key in result}


_REOPEN: Final = (
    update(urls)
    .where(urls.c.id == bindparam("row_id"), urls.c.fetch_state == int(FetchState.SETTLED))
    .values(REOPENED.values)
)


def reopen(transaction: Transaction, url_ids: Iterable[int]) -> None:
    """Makes settled rows due at once, as if they were new."""
    ids = list(url_ids)
    with url_classes.watch(transaction, ids):
        write_rows(transaction, _REOPEN, [{"row_id": url_id} for url_id in ids])


class _ClaimRow(NamedTuple):
    """What a claim needs of a row and its document; an attribute takes a tenth of the time of one of SQLAlchemy's rows."""

    id: int
    url: str
    host_id: int
    depth: int
    attempts: int
    failed_runs: int
    failures: str | None
    code: int
    display_url: str | None
    last_fetched_ms: int | None
    interval_ms: int | None
    unread: str | None
    lacks: str | None
    sitemap_id: int | None
    lastmod_ms: int | None
    version: int | None
    etag: str | None
    last_modified: str | None
    body_digest: bytes | None
    fields_digest: bytes | None
    segment: int | None
    state: int | None
    canonical_key: int | None
    display_key: int | None
    answered_key: int | None
    unavailable_ms: int | None
    rendered: str | None
    parts: str | None
    read_version: int | None
    indexed_version: int | None
    rejected_run: int | None
    evidence: str | None
    document_code: int | None


_CLAIM_FIELDS: Final = select_fields(_ClaimRow, urls, documents, document_code=documents.c.code)
_CLAIMS: Final = _CLAIM_FIELDS.select_from(URLS_WITH_DOCUMENTS)
# Built once: of very many hosts each has few rows, and to build a statement costs more than to run it.
_HERE: Final = and_(urls.c.source_id == bindparam("source"), urls.c.host_id == bindparam("host"))
_OF_HOST: Final = _CLAIMS.where(_HERE).limit(bindparam("most"))
_WAITS: Final = urls.c.due_ms.between(bindparam("next_ms"), bindparam("last_ms"))
_CLAIM_TODO: Final = _OF_HOST.where(TODO, urls.c.lap == 0, ~_WAITS).order_by(urls.c.depth, urls.c.id)
_CLAIM_AT_LAST: Final = _OF_HOST.where(TODO, urls.c.lap > 0, ~_WAITS).order_by(urls.c.lap, urls.c.depth, urls.c.id)
_CLAIM_DUE: Final = _OF_HOST.where(DUE, urls.c.due_ms <= bindparam("horizon")).order_by(urls.c.due_ms)
_IS_REVIEWED: Final = or_(unindexed(urls.c.id) <= bindparam("reviewed"), unindexed(urls.c.id) > bindparam("last_known"))
_CLAIM_REVIEWED: Final = (_CLAIM_TODO.where(_IS_REVIEWED), _CLAIM_DUE.where(_IS_REVIEWED))
_CLAIM_AT_LAST_REVIEWED: Final = _CLAIM_AT_LAST.where(_IS_REVIEWED)


def claim(
    transaction: Transaction,
    source_id: int,
    host_id: int,
    *,
    limit: int,
    now_ms: int,
    horizon_ms: int,
    forced: bool,
    unreviewed: tuple[int, int] | None = None,
    at_last: bool = False,
    may_wait: bool = True,
) -> list[Claim]:
    """Claims up to ``limit`` rows of a host: first rows to do, by rising depth, then settled ones that are due; all are fetching.

    ``at_last``: those that are visited after all others, by lap and depth. ``forced`` claims have no validators and no
    body digest: everything is processed again. None of the rows above the first id of ``unreviewed`` up to the second is
    claimed. Without ``may_wait`` those are claimed too that are to be tried again later.
    """
    host = {"source": source_id, "host": host_id}
    of_todo, of_due = (_CLAIM_TODO, _CLAIM_DUE) if unreviewed is None else _CLAIM_REVIEWED
    if unreviewed is not None:
        host |= {"reviewed": unreviewed[0], "last_known": unreviewed[1]}
    waiting = {"next_ms": now_ms + 1, "last_ms": now_ms + LONGEST_WAIT_MS if may_wait else now_ms}
    if at_last:
        of_todo = _CLAIM_AT_LAST if unreviewed is None else _CLAIM_AT_LAST_REVIEWED
    rows = _select(transaction, of_todo, {**host, **waiting, "most": limit})
    if len(rows) < limit and not at_last:
        rows += _select(transaction, of_due, {**host, "horizon": horizon_ms, "most": limit - len(rows)})
    _note(transaction, [row.id for row in rows], CLAIMED)
    return [_build_claim(row, forced=forced, now_ms=now_ms) for row in rows]


@cache
def _build_pick(dialect: Dialect, *, of_todo: bool, reviewed: bool) -> Select[int]:
    """The first rows of each of many hosts: those to do, or those that are due."""

    def pick(host: ColumnElement[int]) -> Select[int]:
        rows = select(urls.c.id).where(urls.c.source_id == bindparam("source"), urls.c.host_id == host)
        if of_todo:
            rows = rows.where(TODO, urls.c.lap == 0, ~_WAITS).order_by(urls.c.depth, urls.c.id)
        else:
            rows = rows.where(DUE, urls.c.due_ms <= bindparam("horizon")).order_by(urls.c.due_ms)
        return (rows.where(_IS_REVIEWED) if reviewed else rows).limit(bindparam("most"))

    return dialect.pick_of_each("hosts", pick)


def claim_of_each(
    transaction: Transaction,
    source_id: int,
    host_ids: Sequence[int],
    *,
    limit: int,
    now_ms: int,
    horizon_ms: int,
    forced: bool,
    unreviewed: tuple[int, int] | None = None,
) -> list[Claim]:
    """Claims up to ``limit`` rows of each of many hosts, in a few statements; see ``claim``.

    Those of a host are in its order, rows to do before those that are due.
    """
    dialect = dialect_of(transaction)
    values: dict[str, Any] = {"source": source_id, "most": limit, "hosts": dialect.pack_numbers(host_ids)}
    if unreviewed is not None:
        values |= {"reviewed": unreviewed[0], "last_known": unreviewed[1]}
    waiting = {"next_ms": now_ms + 1, "last_ms": now_ms + LONGEST_WAIT_MS}
    of_todo = _build_pick(dialect, of_todo=True, reviewed=unreviewed is not None)
    todo = list(transaction.execute(of_todo, values | waiting).scalars())
    claims = claim_these(transaction, todo, now_ms=now_ms, forced=forced)
    if horizon_ms < 0:
        return claims
    left = Counter(dict.fromkeys(host_ids, limit))
    left.subtract(claim.host_id for claim in claims)
    values |= {"horizon": horizon_ms, "hosts": dialect.pack_numbers([host for host in host_ids if left[host] > 0])}
    of_due = _build_pick(dialect, of_todo=False, reviewed=unreviewed is not None)
    due = list(transaction.execute(of_due, values).scalars())
    places = read_parts(transaction, select(urls.c.id, urls.c.host_id), urls.c.id, due)
    hosts = {row.id: row.host_id for row in places}
    taken = []
    for url_id in due:
        left[hosts[url_id]] -= 1
        if left[hosts[url_id]] >= 0:
            taken.append(url_id)
    return claims + claim_these(transaction, taken, now_ms=now_ms, forced=forced)


def claim_these(transaction: Transaction, url_ids: Sequence[int], *, now_ms: int, forced: bool) -> list[Claim]:
    """Claims rows by id, in the order of ``url_ids``."""
    rows = {row.id: row for part in split(url_ids) for row in _select(transaction, _CLAIMS.where(urls.c.id.in_(part)))}
    _note(transaction, url_ids, CLAIMED)
    return [_build_claim(rows[url_id], forced=forced, now_ms=now_ms) for url_id in url_ids]


def claim_alone(transaction: Transaction, url_id: int, *, now_ms: int, forced: bool) -> Claim:
    """Claims one row, while no other is claimed."""
    (row,) = _select(transaction, _CLAIMS.where(urls.c.id == url_id))
    _note(transaction, [url_id], CLAIMED_ALONE)
    return _build_claim(row, forced=forced, now_ms=now_ms)


def _select(transaction: Transaction, query: Select[Any], values: Mapping[str, Any] | None = None) -> list[_ClaimRow]:
    return [_ClaimRow._make(row) for row in transaction.execute(query, values)]


#: Columns that a claim has as they are.
_CLAIM_AS_STORED: Final = (
    *("url", "host_id", "depth", "failed_runs", "failures", "code", "canonical_key", "display_key", "display_url"),
    *("interval_ms", "sitemap_id", "lastmod_ms", "version", "rendered", "parts", "lacks"),
)


def _build_claim(row: _ClaimRow, *, forced: bool, now_ms: int) -> Claim:
    has_document = row.segment is not None or row.state in AT_HAND
    # The document belongs in the index and its record is gone: the page is needed, so no validators are sent.
    gone = not has_document and row.document_code in WITH_DOCUMENT
    # The date that the author set (unavailable_after) is over, or the source was edited since the page was read: the
    # same bytes have another result now.
    over = row.unavailable_ms is not None and row.unavailable_ms < now_ms
    whole = forced or gone or over
    redirected = row.answered_key is not None
    # Validators belong to the target of a redirect, not to its URL. A later visit may have failed without one.
    unasked = whole or redirected or row.etag == CANONICAL_ETAG
    etag, last_modified = (None, None) if unasked else (row.etag, row.last_modified)
    unread_body = None
    if row.unread is not None and row.code == Code.NO_CONVERTER and not whole:
        unread_body = lifecycle.parse_unread(row.unread)
        # The last answer is not the one that the document was made of.
        etag, last_modified = (None, None) if unread_body is None else (unread_body.etag, unread_body.last_modified)
    return Claim(
        **{name: getattr(row, name) for name in _CLAIM_AS_STORED},
        url_id=row.id,
        attempt=row.attempts,
        etag=etag,
        last_modified=last_modified,
        body_digest=None if whole else row.body_digest,
        # That of a page which was not to be indexed says nothing of the document: only its text may be the same.
        fields_digest=row.fields_digest if row.document_code in WITH_DOCUMENT else None,
        has_document=has_document,
        is_known=is_known(row.indexed_version, row.state),
        redirected=redirected,
        rejected=row.evidence if row.rejected_run is not None and (has_document or row.indexed_version) else None,
        anew=whole,
        visited_ms=row.last_fetched_ms,
        unread=unread_body,
        in_archive=row.etag is not None and row.etag.startswith(ARCHIVE_ETAG),
        read_version=None if whole or not has_document else row.read_version,
    )


def _note(transaction: Transaction, url_ids: Sequence[int], event: StateEvent) -> None:
    write_parts(transaction, update(urls).values(event.values), urls.c.id, url_ids)


def release(transaction: Transaction, url_ids: Sequence[int]) -> None:
    """Releases claimed rows: they are to do again, and unchanged otherwise."""
    _note(transaction, url_ids, RELEASED)


def wait(transaction: Transaction, moments: Mapping[int, int]) -> None:
    """Has claimed rows wait until the moments given, unchanged otherwise: they are not of this run."""
    statement = update(urls).where(urls.c.id == bindparam("row_id")).values(NOT_NOW.values)
    with url_classes.watch(transaction, [*moments]):
        write_rows(transaction, statement, [{"row_id": row, "new_due": moment} for row, moment in moments.items()])


def set_laps(transaction: Transaction, laps: Mapping[int, int]) -> None:
    """Puts claimed rows back, to be visited after all others in the laps given."""
    statement = update(urls).where(urls.c.id == bindparam("row_id")).values(PUT_OFF.values)
    write_rows(transaction, statement, [{"row_id": row, "new_lap": lap} for row, lap in laps.items()])


def find_next_due_ms(transaction: Transaction, source_id: int, *, at_last: bool = False) -> int | None:
    """When the first row that is to do becomes due, of those that are visited after all others or of these; None without any."""
    lap = urls.c.lap > 0 if at_last else urls.c.lap == 0
    query = select(func.min(urls.c.due_ms)).where(TODO, urls.c.source_id == source_id, lap)
    return transaction.execute(query).scalar()


_REPLACED: Final = ("error", "attempts", "failed_runs", "failures", "due_ms", "redirects", "unread", "lacks")
_ENDS: Final = (*_REPLACED, "code", "rule", "fetched_ms", "interval_ms")
_SETTLE: Final = (
    update(urls)
    .where(urls.c.id == bindparam("row_id"))
    .values(
        code=bindparam("new_code"),
        rule=case(
            (and_(bindparam("keep_rule") == 1, urls.c.code == bindparam("new_code")), urls.c.rule),
            else_=bindparam("new_rule"),
        ),
        **{name: bindparam(f"new_{name}") for name in _REPLACED},
        opens_ms=None,
        last_fetched_ms=func.coalesce(bindparam("new_fetched_ms"), urls.c.last_fetched_ms),
        interval_ms=func.coalesce(bindparam("new_interval_ms", type_=BigInteger), urls.c.interval_ms),
        run_id=func.coalesce(bindparam("new_run", type_=Integer), urls.c.run_id),
    )
)


_SETTLE_BY: Final = {event: _SETTLE.values(event.values) for event in (VISITED, REFUSED, REFUSED_LATER)}


def settle(transaction: Transaction, visits: Sequence[Settled], event: StateEvent = VISITED) -> None:
    """Writes the ends of visits: rows that were fetching are settled, or to do again where ``Settled`` says so.

    ``event`` is one of VISITED, REFUSED and REFUSED_LATER (edited rules: rows that nobody fetches are settled).
    """
    if not visits:
        return
    run_id = url_classes.find_run(transaction)
    parameters: list[dict[str, Any]] = [
        {
            **{f"new_{name}": getattr(visit, name) for name in _ENDS},
            "row_id": visit.url_id,
            "new_state": int(visit.fetch_state),
            "keep_rule": int(visit.keep_rule),
            "new_run": run_id,
        }
        for visit in visits
    ]
    with url_classes.watch(transaction, [visit.url_id for visit in visits]):
        write_rows(transaction, _SETTLE_BY[event], parameters)


def set_codes(transaction: Transaction, codes: Mapping[int, int]) -> None:
    """Sets the codes of rows whose last visit brought a document: they became copies, or are copies no longer."""
    set_rows(transaction, urls.c.id, {row_id: {"code": code} for row_id, code in codes.items()}, _ENDED_WELL)


class VisitResult(NamedTuple):
    """How the last visit of a row ended, also by redirects that were followed, or which rule refuses the row."""

    code: int
    rule: str | None
    failures: str | None = None
    redirected: bool = False


def find_results(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, VisitResult]:
    """The results of the rows that are settled, by id; rows that wait for a visit are left out."""
    columns = urls.c.id, urls.c.code, urls.c.rule, urls.c.failures, urls.c.redirects.is_not(None)
    query = select(*columns).where(urls.c.fetch_state == int(FetchState.SETTLED))
    return {row[0]: VisitResult._make(row[1:]) for row in read_parts(transaction, query, urls.c.id, url_ids)}


class UrlPlace(NamedTuple):
    """A row: its URL, its depth, and how its last visit ended."""

    url: str
    depth: int
    code: int
    rule: str | None
    fetch_state: int


def find_places(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, UrlPlace]:
    """Rows by id."""
    query = select(urls.c.id, *(urls.c[name] for name in UrlPlace._fields))
    return {row[0]: UrlPlace._make(row[1:]) for row in read_parts(transaction, query, urls.c.id, url_ids)}


def find_depths(transaction: Transaction, url_ids: Sequence[int]) -> dict[int, int]:
    """The depth of rows by id."""
    query = select(urls.c.id, urls.c.depth)
    return {row.id: row.depth for row in read_parts(transaction, query, urls.c.id, url_ids)}


def lower_depths(transaction: Transaction, depths: Mapping[int, int]) -> None:
    """Sets the depth of rows by id."""
    set_rows(transaction, urls.c.id, {row_id: {"depth": depth} for row_id, depth in depths.items()})
