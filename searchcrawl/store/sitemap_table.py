"""The sitemaps of a source, and what they say about its URLs. Sitemaps are not URL rows.

Visits show which of their dates can be believed (L5). The sitemaps that an index names share its counts: a site makes all of
them in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    and_,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
    type_coerce,
    update,
)

from searchcrawl import urls as identities
from searchcrawl.codes import READ, SUCCESS, Code, CodeClass, facts_of, is_retried
from searchcrawl.items import SitemapEnd
from searchcrawl.rules.recrawl import MOST_AHEAD_MS, Proof, Word
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.many_rows import find_among, read_parts, select_fields, upsert_rows, write_parts, write_rows
from searchcrawl.store.schema import sitemaps, urls
from searchcrawl.store.statements import split, unindexed
from searchcrawl.store.urls import url_classes
from searchcrawl.store.urls.url_table import DUE

#: Codes of a sitemap whose list is known: read, or not modified.
_GOOD: Final = sorted(SUCCESS)
#: Codes of a feed that is asked for again: it is there, or may be.
_FEED_STAYS: Final = sorted(
    {*SUCCESS, *(int(code) for code in Code if code.facts.retried), *filter(is_retried, range(400, 600))}
)
#: Codes of URL rows whose page was read and may be shown.
_VISITED: Final = sorted(code for code in READ if facts_of(code).kind is not CodeClass.DISPLAY)


class SitemapRow(NamedTuple):
    """A sitemap; ``code`` is 0 where it was never read. The validators are those of the last good reading."""

    id: int
    url: str
    code: int
    etag: str | None
    last_modified: str | None
    run_id: int | None

    @property
    def is_good(self) -> bool:
        """Whether its list is known."""
        return self.code in _GOOD


def find(transaction: Transaction, source_id: int, url: str) -> SitemapRow | None:
    """The row of a sitemap."""
    query = select_fields(SitemapRow, sitemaps)
    here = sitemaps.c.source_id == source_id, sitemaps.c.key == identities.key(url)
    row = transaction.execute(query.where(*here)).one_or_none()
    return None if row is None else SitemapRow._make(row)


def find_good_roots(transaction: Transaction, source_id: int) -> list[str]:
    """The sitemaps that no index names and that were read well."""
    query = select(sitemaps.c.url).where(
        sitemaps.c.source_id == source_id, sitemaps.c.parent_id.is_(None), sitemaps.c.code.in_(_GOOD)
    )
    return list(transaction.execute(query.order_by(sitemaps.c.id)).scalars())


def find_feeds(transaction: Transaction, source_id: int) -> list[str]:
    """The feeds that only pages name, and that are there; those that were read longest ago first."""
    query = select(sitemaps.c.url).where(
        sitemaps.c.source_id == source_id, sitemaps.c.is_feed == 1, sitemaps.c.code.in_(_FEED_STAYS)
    )
    return list(transaction.execute(query.order_by(sitemaps.c.read_ms, sitemaps.c.id)).scalars())


def find_children(transaction: Transaction, sitemap_id: int) -> list[str]:
    """The sitemaps that an index named when it was read last."""
    query = select(sitemaps.c.url).where(sitemaps.c.parent_id == sitemap_id).order_by(sitemaps.c.id)
    return list(transaction.execute(query).scalars())


def sort_by_reading(transaction: Transaction, source_id: int, wanted: Sequence[str]) -> list[str]:
    """Sitemaps in the order in which they were read last, those that never were first; else as they come."""
    query = select(sitemaps.c.key, sitemaps.c.read_ms).where(
        sitemaps.c.source_id == source_id, sitemaps.c.read_ms.is_not(None)
    )
    rows = read_parts(transaction, query, sitemaps.c.key, [identities.key(url) for url in wanted])
    read_ms: dict[int, int] = {row.key: row.read_ms for row in rows}
    return sorted(wanted, key=lambda url: read_ms.get(identities.key(url), 0))


def add(transaction: Transaction, source_id: int, wanted: Iterable[str], *, parent_id: int | None = None) -> list[int]:
    """The ids of sitemaps, rising; new rows are added, and belong to the index ``parent_id``."""
    return sorted(set(find_or_add(transaction, source_id, wanted, parent_id=parent_id).values()))


def find_or_add(
    transaction: Transaction, source_id: int, wanted: Iterable[str], *, parent_id: int | None = None
) -> dict[str, int]:
    """The ids of sitemaps by URL; new rows are added, and belong to the index ``parent_id``."""
    keys = {url: identities.key(url) for url in wanted}
    urls_of = {key: url for url, key in keys.items()}
    rows = [{"source_id": source_id, "key": key, "url": url, "parent_id": parent_id} for key, url in urls_of.items()]
    upsert_rows(transaction, sitemaps, ("source_id", "key"), rows)
    query = select(sitemaps.c.key, sitemaps.c.id).where(sitemaps.c.source_id == source_id)
    found = {row.key: row.id for row in read_parts(transaction, query, sitemaps.c.key, urls_of)}
    return {url: found[key] for url, key in keys.items()}


def find_others(transaction: Transaction, sitemap_id: int, wanted: Sequence[int]) -> list[int]:
    """Those of the sitemaps that do not belong to this index, but to another or to none.

    Neither the index itself nor that which names it: many name each other in circles.
    """
    parent = select(func.coalesce(sitemaps.c.parent_id, sitemaps.c.id)).where(sitemaps.c.id == sitemap_id)
    above = {sitemap_id, *transaction.execute(parent).scalars()}
    others = find_among(transaction, sitemaps.c.id, wanted, sitemaps.c.parent_id.is_distinct_from(sitemap_id))
    return [each for each in others if each not in above]


def find_existing(transaction: Transaction, wanted: Sequence[int]) -> list[int]:
    """Those of the sitemaps that have a row."""
    return find_among(transaction, sitemaps.c.id, wanted)


def take_from_foreign(transaction: Transaction, wanted: Sequence[int], parent_id: int | None) -> None:
    """Gives the sitemaps that belong to an index of another origin to the index ``parent_id``, or to none."""
    parents = sitemaps.alias("parents")
    query = select(sitemaps.c.id, sitemaps.c.url, parents.c.url.label("parent")).where(
        sitemaps.c.parent_id == parents.c.id
    )
    foreign = [
        row.id
        for row in read_parts(transaction, query, sitemaps.c.id, wanted)
        if identities.origin_of(row.url) != identities.origin_of(row.parent) and row.id != parent_id
    ]
    give_to(transaction, foreign, parent_id)


def give_to(transaction: Transaction, wanted: Sequence[int], parent_id: int | None) -> None:
    """The sitemaps belong to the index ``parent_id``, or to none, from now on."""
    statement = update(sitemaps).where(sitemaps.c.parent_id.is_distinct_from(parent_id)).values(parent_id=parent_id)
    write_parts(transaction, statement, sitemaps.c.id, wanted)


def end(
    transaction: Transaction, sitemap_id: int, reading: SitemapEnd, *, run_id: int, now_ms: int, is_feed: bool = False
) -> None:
    """Writes how a reading ended; a failure keeps the validators, and 304 may renew them."""
    values: dict[str, object] = {"code": reading.code, "error": reading.error, "run_id": run_id, "read_ms": now_ms}
    values["is_feed"] = int(is_feed)
    if reading.code == 200 or (reading.code == 304 and reading.etag is not None):
        values["etag"] = reading.etag
    if reading.code == 200 or (reading.code == 304 and reading.last_modified is not None):
        values["last_modified"] = reading.last_modified
    transaction.execute(update(sitemaps).where(sitemaps.c.id == sitemap_id).values(values))


_END_UNREAD: Final = (
    update(sitemaps)
    .where(sitemaps.c.id == bindparam("row_id"))
    .values({name: bindparam(f"new_{name}") for name in ("code", "error", "run_id", "read_ms", "is_feed")})
)


def end_unread(
    transaction: Transaction, ends: Iterable[tuple[int, SitemapEnd, bool]], *, run_id: int, now_ms: int
) -> None:
    """Writes how the readings of sitemaps ended that brought nothing, by id and whether it is a feed; all keep their validators."""
    rows = [
        {
            "row_id": sitemap_id,
            "new_code": reading.code,
            "new_error": reading.error,
            "new_run_id": run_id,
            "new_read_ms": now_ms,
            "new_is_feed": int(is_feed),
        }
        for sitemap_id, reading, is_feed in ends
    ]
    write_rows(transaction, _END_UNREAD, rows)


_SITEMAP: Final[BindParameter[int]] = bindparam("new_sitemap")
_LASTMOD: Final[BindParameter[int | None]] = bindparam("new_lastmod")
_LIST: Final = (
    update(urls)
    .where(
        urls.c.id == bindparam("row_id"),
        or_(
            and_(
                or_(urls.c.sitemap_id.is_(None), urls.c.sitemap_id == _SITEMAP),
                or_(urls.c.sitemap_id.is_(None), urls.c.lastmod_ms.is_distinct_from(_LASTMOD)),
            ),
            # Of several sitemaps that list a row, the one with the latest lastmod counts.
            and_(urls.c.sitemap_id != _SITEMAP, or_(urls.c.lastmod_ms.is_(None), urls.c.lastmod_ms < _LASTMOD)),
        ),
    )
    .values(sitemap_id=_SITEMAP, lastmod_ms=_LASTMOD)
)


def list_urls(transaction: Transaction, sitemap_id: int, lastmods: Mapping[int, int | None]) -> None:
    """Notes that a sitemap lists these rows, with their lastmod in ms."""
    listed = {"new_sitemap": sitemap_id}
    rows = [{**listed, "row_id": row_id, "new_lastmod": lastmod} for row_id, lastmod in lastmods.items()]
    write_rows(transaction, _LIST, rows)


def unlist_others(transaction: Transaction, sitemap_id: int, listed: Collection[int]) -> int:
    """Clears sitemap and lastmod of rows that the sitemap no longer lists; returns their number."""
    there = transaction.execute(select(urls.c.id).where(urls.c.sitemap_id == sitemap_id)).scalars()
    vanished = [row_id for row_id in there if row_id not in listed]
    write_parts(transaction, update(urls).values(sitemap_id=None, lastmod_ms=None), urls.c.id, vanished)
    return len(vanished)


def find_other_children(transaction: Transaction, sitemap_id: int, named: Collection[int]) -> list[int]:
    """The sitemaps of an index that it no longer names."""
    there = transaction.execute(select(sitemaps.c.id).where(sitemaps.c.parent_id == sitemap_id)).scalars()
    return [child for child in there if child not in named]


def forget(transaction: Transaction, gone: Sequence[int]) -> None:
    """Removes sitemaps, and clears what they said."""
    write_parts(transaction, update(urls).values(sitemap_id=None, lastmod_ms=None), urls.c.sitemap_id, gone)
    write_parts(transaction, update(sitemaps).values(parent_id=None), sitemaps.c.parent_id, gone)
    write_parts(transaction, delete(sitemaps), sitemaps.c.id, gone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """The sitemaps (``urls``) whose lastmods decide what is due, as far as this run has read them.

    No row is put off that was not visited for ``longest_ms``; 0: however long ago that was.
    """

    source_id: int
    run_id: int
    horizon_ms: int
    urls: Sequence[str]
    now_ms: int
    longest_ms: int = 0


def put_off(transaction: Transaction, dates: Dates) -> int:
    """Defers due rows to the next run if their lastmod is not after their last visit; returns their number.

    Not those whose last visit is longer ago than ``dates.longest_ms``, or was made by a clock that was ahead.
    """
    unchanged = and_(
        urls.c.due_ms <= dates.horizon_ms,
        urls.c.lastmod_ms <= urls.c.last_fetched_ms,
        urls.c.last_fetched_ms.between(dates.now_ms - dates.longest_ms if dates.longest_ms else 0, dates.now_ms),
        IS_SILENCE_BELIEVED,
    )
    return _set_due(transaction, dates, unchanged, due_ms=dates.horizon_ms + 1)


def bring_forward(transaction: Transaction, dates: Dates) -> int:
    """Makes rows due if their lastmod is after their last visit; returns their number.

    Rows that were visited in this run are not changed, and of sitemaps whose dates were not proven yet only some.
    """
    changed = and_(
        urls.c.due_ms > dates.horizon_ms,
        urls.c.last_fetched_ms <= dates.horizon_ms,
        urls.c.lastmod_ms > urls.c.last_fetched_ms,
        urls.c.lastmod_ms <= dates.now_ms + MOST_AHEAD_MS,
        IS_BELIEVED,
    )
    return _set_due(transaction, dates, changed, due_ms=dates.horizon_ms, probing=True)


def _set_due(
    transaction: Transaction, dates: Dates, condition: ColumnElement[bool], *, due_ms: int, probing: bool = False
) -> int:
    count = 0
    keys = [identities.key(url) for url in dates.urls]
    for part in split(keys):
        read = select(sitemaps.c.id).where(
            sitemaps.c.source_id == dates.source_id,
            sitemaps.c.key.in_(part),
            sitemaps.c.run_id == dates.run_id,
            sitemaps.c.code.in_(_GOOD),
        )
        rows = urls.join(sitemaps, sitemaps.c.id == urls.c.sitemap_id).join(voices, voices.c.id == VOICE_ID)
        number = func.row_number().over(partition_by=VOICE_ID, order_by=(urls.c.lastmod_ms.desc(), urls.c.id))
        columns = (urls.c.id, IS_PROBED.label("probed"), number.label("number"))
        found_here = (
            select(*(columns if probing else columns[:1]))
            .select_from(rows)
            .where(
                DUE,
                # The rows that these sitemaps list are few; the index of due rows has them all.
                unindexed(urls.c.source_id) == dates.source_id,
                urls.c.sitemap_id.in_(read),
                urls.c.code.in_(_VISITED),
                urls.c.failed_runs == 0,
                condition,
            )
            .subquery("found")
        )
        query = select(found_here.c.id)
        if probing:
            query = query.where(or_(found_here.c.probed, found_here.c.number <= PROBES))
        found = list(transaction.execute(query).scalars())
        with url_classes.watch(transaction, found):
            write_parts(transaction, update(urls).values(due_ms=due_ms), urls.c.id, found)
        count += len(found)
    return count


def find_failures(transaction: Transaction, source_id: int, wanted: Sequence[str]) -> list[tuple[str, str]]:
    """The URLs of sitemaps that could not be read last time, and why."""
    keys = [identities.key(url) for url in wanted]
    query = select(sitemaps.c.url, func.coalesce(sitemaps.c.error, "")).where(
        sitemaps.c.source_id == source_id, sitemaps.c.key.in_(keys), sitemaps.c.code.not_in((0, *_GOOD))
    )
    return [(row[0], row[1]) for row in transaction.execute(query.order_by(sitemaps.c.id))]


#: So many pages are visited sooner in a run by dates of which less is known than that.
PROBES: Final = 10
#: Of the pages that were called changed, one in so many must have been.
_MOST_FALSE_CALLS: Final = 4
#: Of the pages that were called unchanged, less than one in so many may have changed, once so many did.
_LEAST_TRUE_SILENCE: Final = 10
_FEW_MISSED: Final = 3
#: After so many proofs all of them count for half: a site may be mended.
_MOST_PROOFS: Final = 64

#: The sitemap, or the index that names it.
voices = sitemaps.alias("voices")
VOICE_ID: Final = func.coalesce(sitemaps.c.parent_id, sitemaps.c.id)
#: Enough is known of its calls.
IS_PROBED: Final = voices.c.said_changed >= PROBES
IS_BELIEVED: Final = or_(~IS_PROBED, voices.c.changed_as_said * _MOST_FALSE_CALLS >= voices.c.said_changed)
IS_SILENCE_BELIEVED: Final = or_(
    voices.c.changed_unsaid < _FEW_MISSED, voices.c.changed_unsaid * _LEAST_TRUE_SILENCE < voices.c.said_same
)


def note_proofs(transaction: Transaction, proofs: Sequence[Proof]) -> None:
    """Adds what visits showed to the counts."""
    if not proofs:
        return
    ids = sorted({proof.sitemap_id for proof in proofs})
    found = transaction.execute(select(sitemaps.c.id, VOICE_ID).where(sitemaps.c.id.in_(ids)))
    voice_of = {row[0]: row[1] for row in found}
    added: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for proof in proofs:
        voice = voice_of.get(proof.sitemap_id)
        if voice is None:
            # Its index does not name it any more.
            continue
        called = proof.said is Word.CHANGED
        added[voice]["said_changed" if called else "said_same"] += 1
        if proof.changed:
            added[voice]["changed_as_said" if called else "changed_unsaid"] += 1
    for voice, counts in sorted(added.items()):
        transaction.execute(update(sitemaps).where(sitemaps.c.id == voice).values(**_build_sums(counts)))


def _build_sums(counts: dict[str, int]) -> dict[str, object]:
    """The new values of the columns: halved where there are many, each count with the one that it is a part of."""
    values: dict[str, object] = {}
    for whole, part in (("said_changed", "changed_as_said"), ("said_same", "changed_unsaid")):
        if whole in counts:
            many = sitemaps.c[whole] + counts[whole] > _MOST_PROOFS
            for name in (whole, part):
                total = sitemaps.c[name] + counts.get(name, 0)
                values[name] = case((many, type_coerce(total, Integer).op("/")(2)), else_=total)
    return values
