"""The patterns of URLs: how many URLs they have, how they grow, what text their pages have, and which are ended (L8, L12).

And what rendering brought for sets of URLs that are alike (rules.rendering).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import xxhash
from sqlalchemy import ColumnElement, bindparam, delete, or_, select, update

from searchcrawl.rules.traps import PRODUCTIVE_PAGES, WITH_TEXT
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.engine.dialect import dialect_of
from searchcrawl.store.many_rows import read_page, read_parts, upsert_rows
from searchcrawl.store.schema import patterns, render_patterns, urls

#: URLs that are read by one query.
_URLS_AT_ONCE: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPattern:
    """A pattern, as the next run goes on with it."""

    text: str
    #: pages that came
    pages: int = 0
    #: the mean share of own text of its last pages, in thousandths
    own_permille: int = 0
    #: the key of ``[scope]`` that ended it; None: it goes on
    cut: str | None = None
    #: the value of that key, or of ``scope.trap_after`` where it is visited last
    cut_limit: int | None = None
    #: the share of each of the last pages, a byte each (255 is 1)
    shares: bytes | None = None
    #: in so many spans in a row it grew as fast as it was visited
    grown: int = 0
    #: pages of it that came since it is visited last, or since that was looked at; None: it is visited among all others
    last_pages: int | None = None
    #: those of these pages that named a new URL
    last_naming: int = 0
    #: new URLs of it that were named meanwhile, and those of them that pages outside named
    last_named: int = 0
    last_outside: int = 0

    @property
    def has_text(self) -> bool:
        """Whether its pages have text of their own: it stays where a wider pattern is ended."""
        return self.pages >= PRODUCTIVE_PAGES and self.own_permille >= 1000 * WITH_TEXT

    @property
    def goes_on(self) -> bool:
        """Whether it is visited last, and grew as fast as it was visited."""
        return self.last_pages is not None and self.grown > 0 and self.last_named >= self.last_pages > 0

    def describe(self) -> str:
        """What it was judged by, as part of a sentence."""
        own = f"{self.own_permille / 10:.1f} % of what its last pages brought is text of their own"
        if not self.last_pages:
            return own
        return (
            f"visited last, {self.last_pages} of its pages named {self.last_named} new URLs of it, other pages "
            f"{self.last_outside}; {own}"
        )


_COLUMNS: Final = (
    "pages", "own_permille", "cut", "cut_limit", "shares", "grown", "last_pages", "last_naming", "last_named", "last_outside",
)  # fmt: skip


def store(transaction: Transaction, source_id: int, rows: Sequence[StoredPattern]) -> None:
    """Writes patterns without their numbers of URLs."""
    _write(transaction, source_id, {row.text: {name: getattr(row, name) for name in _COLUMNS} for row in rows})


def _write(transaction: Transaction, source_id: int, rows: Mapping[str, Mapping[str, Any]], where: Any = None) -> None:
    """Writes columns of patterns, by their texts; ``where`` says which known ones are changed."""
    if rows:
        names = [*next(iter(rows.values()))]
        statement = dialect_of(transaction).upsert(
            patterns, ["source_id", "key"], lambda new: {name: new[name] for name in names}, where
        )
        of_source = {"source_id": source_id}
        values = [{**of_source, "key": _hash_text(text), "pattern": text, **row} for text, row in rows.items()]
        transaction.execute(statement, values)


def load(transaction: Transaction, source_id: int, *, with_shares: bool = False) -> list[StoredPattern]:
    """The patterns with pages that were looked at, or that are ended, in the order in which they were found.

    Without ``with_shares`` their ``shares`` are left out.
    """
    looked_at = or_(patterns.c.pages > 0, patterns.c.cut.is_not(None))
    return _read(transaction, source_id, looked_at, with_shares=with_shares)


def find(transaction: Transaction, source_id: int, texts: Sequence[str]) -> list[StoredPattern]:
    """The patterns with these texts that are ended, or visited last."""
    named = dialect_of(transaction).is_among(patterns.c.key, [_hash_text(text) for text in texts])
    return _read(transaction, source_id, named, or_(patterns.c.cut.is_not(None), patterns.c.last_pages.is_not(None)))


def _read(
    transaction: Transaction, source_id: int, *conditions: ColumnElement[bool], with_shares: bool = False
) -> list[StoredPattern]:
    names = [name for name in _COLUMNS if with_shares or name != "shares"]
    query = select(patterns.c.pattern.label("text"), *(patterns.c[name] for name in names))
    rows = transaction.execute(query.where(patterns.c.source_id == source_id, *conditions).order_by(patterns.c.id))
    return [StoredPattern(**row._mapping) for row in rows]


def forget_cuts(transaction: Transaction, source_id: int, *, key: str, limit: int) -> None:
    """Forgets what ``key`` ended with another value than ``limit``, and all that is known of such pages."""
    nothing = {"pages": 0, "own_permille": 0, "grown": 0, "last_naming": 0, "last_named": 0, "last_outside": 0}
    transaction.execute(
        update(patterns)
        .where(patterns.c.source_id == source_id, patterns.c.cut == key, patterns.c.cut_limit != limit)
        .values(cut=None, cut_limit=None, shares=None, last_pages=None, **nothing)
    )


def count_urls(transaction: Transaction, source_id: int, texts: Sequence[str]) -> dict[str, int]:
    """How many URLs patterns have; 0 for those that are not known."""
    query = select(patterns.c.pattern, patterns.c.urls).where(patterns.c.source_id == source_id)
    keys = [_hash_text(text) for text in texts]
    rows = read_parts(transaction, query, patterns.c.key, keys, are_keys=True)
    return dict.fromkeys(texts, 0) | {row.pattern: row.urls for row in rows}


def set_counts(transaction: Transaction, source_id: int, numbers: Mapping[str, int]) -> None:
    """Writes how many URLs patterns have."""
    _write(transaction, source_id, {text: {"urls": number} for text, number in numbers.items()})


def mark_full(transaction: Transaction, source_id: int, texts: Collection[str], *, key: str, limit: int) -> None:
    """Marks patterns as ended that have all the URLs that ``key`` allows; patterns ended by another key stay."""
    ended = {"cut": key, "cut_limit": limit}
    _write(transaction, source_id, dict.fromkeys(texts, ended), where=patterns.c.cut.is_(None))


def forget_counts(transaction: Transaction, source_id: int) -> None:
    """Sets the numbers of URLs of all patterns to 0."""
    transaction.execute(update(patterns).where(patterns.c.source_id == source_id).values(urls=0))


def list_urls(transaction: Transaction, source_id: int, *, without: Sequence[int]) -> Iterator[str]:
    """The URLs of a source whose codes are not among ``without``, by rising id."""
    query, after = select(urls.c.id, urls.c.url).where(urls.c.code.not_in(without)), 0
    while rows := read_page(transaction, query, source_id, by=urls.c.id, after=after, limit=_URLS_AT_ONCE):
        yield from (row.url for row in rows)
        after = rows[-1].id


def _hash_text(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) - (1 << 63)


class Gains(NamedTuple):
    """Pages of a set that were rendered without being known to need it, and how many of them had more text then."""

    rendered: int = 0
    gained: int = 0


def load_gains(transaction: Transaction, source_id: int) -> dict[int, Gains]:
    """What is known of the sets of a source, by their keys."""
    columns = (render_patterns.c.key, render_patterns.c.rendered, render_patterns.c.gained)
    rows = transaction.execute(select(*columns).where(render_patterns.c.source_id == source_id))
    return {row.key: Gains(row.rendered, row.gained) for row in rows}


def find_gains(transaction: Transaction, source_id: int, key: int) -> Gains | None:
    """What is known of one set; None if no page of it was rendered."""
    query = select(render_patterns.c.rendered, render_patterns.c.gained).where(
        render_patterns.c.source_id == bindparam("source"), render_patterns.c.key == bindparam("set_key")
    )
    row = transaction.execute(query, {"source": source_id, "set_key": key}).one_or_none()
    return None if row is None else Gains(row.rendered, row.gained)


def forget_gains(transaction: Transaction, source_id: int) -> None:
    """Forgets what is known of all sets of a source: its pages are rendered in another way from now on."""
    transaction.execute(delete(render_patterns).where(render_patterns.c.source_id == source_id))


def store_gains(transaction: Transaction, source_id: int, gains: Mapping[int, Gains]) -> None:
    """Writes what is known of some sets."""
    rows = [{"source_id": source_id, "key": key, **known._asdict()} for key, known in gains.items()]
    upsert_rows(transaction, render_patterns, ("source_id", "key"), rows, ("rendered", "gained"))
