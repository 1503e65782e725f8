"""Queries of commands: pages of rows by rising id, all facts of one URL, its redirects, and counts. Nothing is written here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import ColumnElement, FromClause, RowMapping, Select, and_, bindparam, func, or_, select

from searchcrawl import urls as identity
from searchcrawl.codes import REDIRECTS, WARNED, Code
from searchcrawl.items import Place
from searchcrawl.rules.decision import ROBOTS_KEY
from searchcrawl.rules.lifecycle import ORPHAN, ORPHAN_RULE
from searchcrawl.rules.redirects import write_target
from searchcrawl.store.documents.presence import IS_REFUSED, is_known
from searchcrawl.store.documents.shared_copy_table import HAS_SURVIVOR
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.many_rows import count_rows
from searchcrawl.store.run_schema import batches
from searchcrawl.store.schema import (
    DOCUMENTS_WITH_URLS,
    PLACE,
    URLS_WITH_DOCUMENTS,
    documents,
    hosts,
    sitemaps,
    sources,
    urls,
)
from searchcrawl.store.statements import is_one_of, unindexed
from searchcrawl.store.states import BatchState, DocumentState, FetchState, Leaving
from searchcrawl.store.urls import link_table

#: Rows that are read in one transaction; a longer transaction would keep the log of SQLite from shrinking.
_PAGE_ROWS: Final = 1000
_OF_SOURCE: Final = unindexed(urls.c.source_id) == bindparam("source_id")
_DOCUMENT_OF_SOURCE: Final = unindexed(documents.c.source_id) == bindparam("source_id")

_referrers = urls.alias("referrers")
_survivors = urls.alias("survivors")
_of_survivors = sources.alias("of_survivors")
_canonicals = urls.alias("canonicals")
_naming = documents.alias("naming")
_standing = documents.alias("standing")
#: How many copies of a document are listed.
_MAX_COPIES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Which rows are listed; None is no restriction. ``since_ms`` is about the last visit, or else the first sight."""

    code: int | None = None
    rule: str | None = None
    host_ids: Sequence[int] | None = None
    since_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedUrl:
    """A URL row with its document, where it has one (``document_state`` is None without)."""

    url_id: int
    url: str
    depth: int
    referrer: str | None
    fetch_state: FetchState
    code: int
    rule: str | None
    error: str | None
    due_ms: int | None
    opens_ms: int | None
    first_seen_ms: int
    last_fetched_ms: int | None
    interval_ms: int | None
    redirects: str | None
    found_as: str | None
    document_state: DocumentState | None
    document_code: int | None
    indexed_version: int | None
    batch_id: int | None
    fields_digest: bytes | None
    etag: str | None
    last_modified: str | None
    last_changed_ms: int | None
    duplicate_of: str | None
    index_error: str | None
    display_url: str | None = None
    duplicate_display: str | None = None
    #: the source of ``duplicate_of`` where that is another one
    duplicate_source: str | None = None

    @property
    def survivor(self) -> str | None:
        """The URL of the document that is indexed in its place, and the name of its source where that is another one."""
        return f"{self.duplicate_of} ({self.duplicate_source})" if self.duplicate_source else self.duplicate_of

    @property
    def is_known(self) -> bool:
        """Whether it has a document that belongs in the index, or is there."""
        return is_known(self.indexed_version, self.document_state)


#: The values of ListedUrl that are columns of the same name.
_OF_ROW: Final = [name for name in ListedUrl.__slots__ if name in urls.c]
_OF_DOCUMENT: Final = [
    name
    for name in ListedUrl.__slots__
    if name in documents.c and name not in {*urls.c.keys(), "url_id", "duplicate_of"}
]


class IndexedRow(NamedTuple):
    """A document in the index as the table has it; ``settled``: the index has its ``fields_digest``."""

    url_id: int
    url: str
    crawl_version: int
    fields_digest: bytes
    settled: bool


def list_urls(database: Database, source_id: int, wanted: RowFilter) -> Iterator[ListedUrl]:
    """The rows of a source by rising id, read a page at a time; raises StoreError."""
    for row in _read_pages(database, source_id, partial(_build_listing, wanted)):
        yield _build_listed(row)


def _read_pages(database: Database, source_id: int, build_query: Callable[[int], Select[Any]]) -> Iterator[RowMapping]:
    """The rows of a source, read a page at a time; ``build_query`` gets the ``url_id`` after which a page begins."""
    after = 0
    while True:
        page = database.read(_load_page, query=build_query(after), source_id=source_id)
        yield from page
        if len(page) < _PAGE_ROWS:
            return
        after = page[-1]["url_id"]


def _load_page(transaction: Transaction, *, query: Select[Any], source_id: int) -> Sequence[RowMapping]:
    return transaction.execute(query, {"source_id": source_id}).mappings().all()


def find_url(transaction: Transaction, source_id: int, key: int) -> ListedUrl | None:
    """The row of one URL, by its key."""
    row = transaction.execute(_BY_KEY, {"source_id": source_id, "key": key}).mappings().one_or_none()
    return None if row is None else _build_listed(row)


def list_indexed(database: Database, source_id: int) -> Iterator[IndexedRow]:
    """The documents of a source that are in the index, as the table knows them, by rising row id; raises StoreError."""
    query = (
        select(
            documents.c.url_id, urls.c.url, documents.c.indexed_version, documents.c.fields_digest, documents.c.state
        )
        .select_from(DOCUMENTS_WITH_URLS)
        .where(_DOCUMENT_OF_SOURCE, documents.c.indexed_version.is_not(None))
        .order_by(documents.c.url_id)
        .limit(_PAGE_ROWS)
    )
    # Both, or PostgreSQL would read the other table from its beginning for each page.
    for row in _read_pages(
        database, source_id, lambda after: query.where(documents.c.url_id > after, urls.c.id > after)
    ):
        digest: bytes = row["fields_digest"] or b""
        settled = bool(digest) and row["state"] == DocumentState.PRESENT
        yield IndexedRow(row["url_id"], row["url"], row["indexed_version"], digest, settled)


def find_host_ids(transaction: Transaction, name: str) -> list[int]:
    """Ids of the hosts with this name: on its port where it names one, else on any."""
    of_any_port = hosts.c.name.startswith(f"{name}:", autoescape=True)
    query = select(hosts.c.id, hosts.c.name).where(or_(hosts.c.name == name, of_any_port))
    return [row.id for row in transaction.execute(query) if name in {row.name, row.name.rpartition(":")[0]}]


def count_cached_records(transaction: Transaction, source_id: int) -> int:
    """How many documents of a source have their record in the cache."""
    return count_rows(transaction, documents, documents.c.source_id == source_id, documents.c.segment.is_not(None))


def count_refused_documents(transaction: Transaction, source_id: int) -> int:
    """How many documents the index refused in their current version, and would be in it else."""
    return count_rows(
        transaction, documents, documents.c.source_id == source_id, IS_REFUSED, documents.c.duplicate_of.is_(None)
    )


def count_warned_urls(transaction: Transaction, source_id: int) -> dict[int, int]:
    """How many URLs have each of the codes that ``status`` warns of."""
    # With literals: SQLite finds the partial index by the text of its condition.
    query = select(urls.c.code, func.count()).where(urls.c.source_id == source_id, is_one_of("code", WARNED))
    return {row[0]: row[1] for row in transaction.execute(query.group_by(urls.c.code))}


def find_set_aside(transaction: Transaction, source_id: int, *, limit: int) -> list[str]:
    """The first URLs that were set aside, because they stopped the crawler."""
    of_source = (urls.c.source_id == source_id, is_one_of("code", WARNED), urls.c.code == int(Code.SET_ASIDE))
    return list(transaction.execute(select(urls.c.url).where(*of_source).order_by(urls.c.id).limit(limit)).scalars())


class Lacking(NamedTuple):
    """Rows whose rendered page lacked the same, and the URL of one of them; ``lacks`` is None for all together."""

    lacks: str | None
    pages: int
    url: str


def find_lacking(transaction: Transaction, source_id: int, *, apart: str) -> list[Lacking]:
    """Rows whose rendered pages lacked something: all, those with what most of them lacked, and those that lacked ``apart``.

    The last ones are in none of the others; numbers of 0 are left out.
    """
    query = select(urls.c.lacks, func.count().label("pages"), func.min(urls.c.url).label("url"))
    here = query.where(urls.c.source_id == source_id, urls.c.lacks.is_not(None))
    others = here.where(urls.c.lacks != apart)
    total = transaction.execute(others.with_only_columns(func.count(), func.min(urls.c.url))).one()
    if not total[0]:
        found = []
    else:
        most = others.group_by(urls.c.lacks).order_by(func.count().desc(), urls.c.lacks).limit(1)
        found = [Lacking(None, total[0], total[1]), *(Lacking._make(row) for row in transaction.execute(most))]
    alone = here.where(urls.c.lacks == apart).group_by(urls.c.lacks)
    return found + [Lacking._make(row) for row in transaction.execute(alone)]


def count_indexed_without_record(transaction: Transaction, source_id: int) -> int:
    """How many documents of the index have no record in the cache any more."""
    lost = documents.c.indexed_version.is_not(None), documents.c.segment.is_(None)
    return count_rows(transaction, documents, documents.c.source_id == source_id, *lost)


def _build_listing(wanted: RowFilter, after: int) -> Select[tuple[object, ...]]:
    # The rows are a subquery, so that no query planner begins with all documents.
    rows = select(urls).where(_OF_SOURCE, urls.c.id > after, *_build_conditions(wanted))
    return _join_documents(rows.order_by(urls.c.id).limit(_PAGE_ROWS))


def _join_documents(rows: Select[Any]) -> Select[tuple[object, ...]]:
    page = rows.subquery("page")
    joined = (
        page.outerjoin(documents, documents.c.url_id == page.c.id)
        .outerjoin(_referrers, _referrers.c.id == page.c.referrer_id)
        .outerjoin(_survivors, _survivors.c.id == documents.c.duplicate_of)
        .outerjoin(
            _of_survivors,
            and_(_of_survivors.c.id == _survivors.c.source_id, _survivors.c.source_id != page.c.source_id),
        )
    )
    query = select(
        page.c.id.label("url_id"),
        *(page.c[name] for name in _OF_ROW),
        *(documents.c[name] for name in _OF_DOCUMENT),
        documents.c.state.label("document_state"),
        documents.c.code.label("document_code"),
        _referrers.c.url.label("referrer"),
        _survivors.c.url.label("duplicate_of"),
        _survivors.c.display_url.label("duplicate_display"),
        _of_survivors.c.name.label("duplicate_source"),
    )
    return query.select_from(joined).order_by(page.c.id)


_BY_KEY: Final = _join_documents(
    select(urls).where(urls.c.source_id == bindparam("source_id"), urls.c.key == bindparam("key"))
)


def _build_conditions(wanted: RowFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.code is not None:
        yield urls.c.code == wanted.code
    if wanted.rule == ROBOTS_KEY:
        yield urls.c.code == Code.ROBOTS
    elif wanted.rule is not None:
        # Rows have KEY: RULE; one of both parts is enough.
        rule, begin, end = urls.c.rule, f"{wanted.rule}: ", f": {wanted.rule}"
        yield or_(rule == wanted.rule, rule.startswith(begin, autoescape=True), rule.endswith(end, autoescape=True))
    if wanted.host_ids is not None:
        yield urls.c.host_id.in_(wanted.host_ids)
    if wanted.since_ms is not None:
        yield func.coalesce(urls.c.last_fetched_ms, urls.c.first_seen_ms) >= wanted.since_ms


def _build_listed(row: RowMapping) -> ListedUrl:
    values: dict[str, Any] = dict(row)
    values["fetch_state"] = FetchState(values["fetch_state"])
    state = values["document_state"]
    values["document_state"] = None if state is None else DocumentState(state)
    return ListedUrl(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFacts:
    """A row of the URL table with its document, and everything else that is known of it.

    ``place`` is that of its record, None without one. ``canonical`` is the URL that it names as canonical, if known. ``copies`` are the URLs of its duplicates, at most
    ten. ``leaving`` tells why it is to leave the index at the end of the run, if it is, ``evidence`` what is or was held
    against it. The three runs are those that put its removal into quarantine, whose removal an operator rejected, and
    that removed it. ``unread`` is its last body, where nothing reads its type (``rules.lifecycle``). ``is_near_copy``: another text
    stands for its own, which differs in a few words. ``redirected`` and ``url_fit``, and those of its survivor, say which of both is
    better (``rules.copy_order``).
    """

    listed: ListedUrl
    failed_runs: int
    failures: str | None
    unread: str | None
    referrer_code: int | None
    named_as_canonical: bool
    sitemap: str | None
    lastmod_ms: int | None
    mimetype: str | None
    rendered: str | None
    parts: str | None
    lacks: str | None
    content_length: int
    place: Place | None
    canonical: str | None
    copies: tuple[str, ...]
    batch_state: BatchState | None
    leaving: Leaving
    quarantine_run: int | None
    rejected_run: int | None
    removed_run: int | None
    evidence: str | None
    is_near_copy: bool
    has_survivor: bool
    redirected: bool
    url_fit: int | None
    survivor_redirected: bool
    survivor_fit: int | None

    @property
    def survivor(self) -> str | None:
        """The document that is indexed in its place, as people read it; one of another source may have changed since."""
        is_over = self.listed.duplicate_source is not None and not self.has_survivor
        return (
            f"{self.listed.survivor}, which has changed or gone since: the next run decides"
            if is_over
            else self.listed.survivor
        )

    @property
    def is_orphan(self) -> bool:
        """Whether it was noted after a completed run that no page, sitemap or start list names it any more."""
        return self.evidence == ORPHAN or self.listed.rule == ORPHAN_RULE


def find_facts(transaction: Transaction, source_id: int, key: int) -> UrlFacts | None:
    """All that is known of the URL with this key (``urls.key``); None where the source does not know it."""
    listed = find_url(transaction, source_id, key)
    if listed is None:
        return None
    row = dict(transaction.execute(_QUERY, {"url_id": listed.url_id}).mappings().one())
    decided: dict[str, Any] = {
        "named_as_canonical": row.pop("referrer_canonical_key") == key,
        "place": Place.read(row.pop(name) for name in PLACE),
        "content_length": row["content_length"] or 0,
        "batch_state": None if row["batch_state"] is None else BatchState(row["batch_state"]),
        "leaving": Leaving(row["leaving"] or 0),
        **{name: bool(row[name]) for name in ("is_near_copy", "has_survivor", "redirected", "survivor_redirected")},
    }
    copies = transaction.execute(_COPIES, {"url_id": listed.url_id}).scalars()
    return UrlFacts(listed=listed, copies=tuple(copies), **{**row, **decided})


def find_shown_as(transaction: Transaction, source_id: int, display_key: int) -> str | None:
    """The access URL of the document with this display URL (its key); an indexed one first."""
    place = {"source_id": source_id, "display_key": display_key}
    return transaction.execute(_SHOWN_AS, place).scalar()


_OF_DOCUMENTS: Final = select(urls.c.url).join(documents, documents.c.url_id == urls.c.id)
_SHOWN_AS: Final = (
    _OF_DOCUMENTS.where(
        documents.c.source_id == bindparam("source_id"), documents.c.display_key == bindparam("display_key")
    )
    .order_by(documents.c.code, urls.c.id)
    .limit(1)
)
_COPIES: Final = (
    _OF_DOCUMENTS.where(documents.c.duplicate_of == bindparam("url_id")).order_by(urls.c.url).limit(_MAX_COPIES)
)
_QUERY: Final = (
    select(
        *(urls.c[name] for name in ("failed_runs", "failures", "unread", "lastmod_ms", "lacks")),
        *(documents.c[name] for name in (*PLACE, "mimetype", "rendered", "parts", "content_length", "url_fit")),
        *(documents.c[name] for name in ("leaving", "quarantine_run", "rejected_run", "removed_run", "evidence")),
        documents.c.near_digest.is_not(None).label("is_near_copy"),
        HAS_SURVIVOR.label("has_survivor"),
        documents.c.answered_key.is_not(None).label("redirected"),
        _standing.c.answered_key.is_not(None).label("survivor_redirected"),
        _standing.c.url_fit.label("survivor_fit"),
        _referrers.c.code.label("referrer_code"),
        _naming.c.canonical_key.label("referrer_canonical_key"),
        sitemaps.c.url.label("sitemap"),
        batches.c.state.label("batch_state"),
        _canonicals.c.url.label("canonical"),
    )
    .select_from(
        URLS_WITH_DOCUMENTS.outerjoin(batches, batches.c.id == documents.c.batch_id)
        .outerjoin(sitemaps, sitemaps.c.id == urls.c.sitemap_id)
        .outerjoin(_referrers, _referrers.c.id == urls.c.referrer_id)
        .outerjoin(_naming, _naming.c.url_id == urls.c.referrer_id)
        .outerjoin(_standing, _standing.c.url_id == documents.c.duplicate_of)
        .outerjoin(
            _canonicals,
            and_(_canonicals.c.source_id == urls.c.source_id, _canonicals.c.key == documents.c.canonical_key),
        )
    )
    .where(urls.c.id == bindparam("url_id"))
)


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
    return link_table.load(transaction, [redirecting_id]).get(redirecting_id) == [url_id]


def find_redirect_target(transaction: Transaction, source_id: int, url: str) -> str | None:
    """The URL to which the row of ``url`` redirected at its last visit; None where it did not, or has no row."""
    query = select(urls.c.id).where(urls.c.source_id == source_id, urls.c.key == identity.key(url))
    url_id = transaction.execute(query.where(is_redirecting(urls))).scalar_one_or_none()
    targets = [] if url_id is None else link_table.load(transaction, [url_id]).get(url_id, [])
    if len(targets) != 1:
        return None
    return transaction.execute(select(urls.c.url).where(urls.c.id == targets[0])).scalar_one_or_none()


class RedirectingUrl(NamedTuple):
    """A row whose document came from another URL, to which redirects led, with the code of its last visit."""

    url: str
    code: int
    in_index: bool


_IN_INDEX: Final = documents.c.indexed_version.is_not(None)
_REDIRECTING: Final = select(urls.c.url, urls.c.code, _IN_INDEX).limit(_MOST_LISTED)


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
    failed = and_(urls.c.redirects.is_not(None), urls.c.error.endswith(f": {url}", autoescape=True))
    led = or_(urls.c.error == write_target(url), failed)
    query = _REDIRECTING.select_from(URLS_WITH_DOCUMENTS).order_by(urls.c.id)
    rows = transaction.execute(query.where(unindexed(urls.c.source_id) == source_id, urls.c.url != url, led))
    return [RedirectingUrl._make(row) for row in rows]


def _list_redirecting(
    transaction: Transaction, source_id: int, *conditions: ColumnElement[bool]
) -> list[RedirectingUrl]:
    query = _REDIRECTING.select_from(DOCUMENTS_WITH_URLS).order_by(_IN_INDEX.desc(), urls.c.id)
    rows = transaction.execute(query.where(documents.c.source_id == source_id, *conditions))
    return [RedirectingUrl._make(row) for row in rows]
